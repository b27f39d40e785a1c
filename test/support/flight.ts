import {
  create,
  type DescMethod,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, type ClientDuplexStream, credentials, Metadata } from "@grpc/grpc-js";
import {
  FlightDescriptor_DescriptorType as DescriptorType,
  type FlightData,
  type FlightDescriptorSchema,
  FlightService,
} from "../../src/gen/arrow/flight/protocol/Flight_pb.ts";

/** A descriptor, as tests write it. */
export type Descriptor = MessageInitShape<typeof FlightDescriptorSchema>;

export const pathTo = (...path: string[]): Descriptor => ({ type: DescriptorType.PATH, path });
export const commandOf = (command: object): Descriptor => ({
  type: DescriptorType.CMD,
  cmd: Buffer.from(JSON.stringify(command)),
});

/** A client of Flight over the stock client of gRPC. */
export interface FlightClient {
  /** Makes a call with the given requests, and returns the responses. Errors are those of grpc-js. */
  call<T = Record<string, never>>(
    name: keyof typeof FlightService.method,
    ...requests: readonly object[]
  ): Promise<T[]>;
  /** Opens a call that stays open. */
  open(name: keyof typeof FlightService.method): ClientDuplexStream<Message, Message>;
  /** Metadata with which the last answer began. */
  readonly metadata: Metadata | undefined;
  close(): void;
}

/** Connects to a gateway. */
export function connectFlight(port: number, headers: Readonly<Record<string, string>> = {}): FlightClient {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  let metadata: Metadata | undefined;

  function open(name: keyof typeof FlightService.method): ClientDuplexStream<Message, Message> {
    const method: DescMethod = FlightService.method[name];
    const sent = new Metadata();
    for (const [key, value] of Object.entries(headers)) sent.set(key, value);
    const stream = client.makeBidiStreamRequest<Message, Message>(
      `/${method.parent.typeName}/${method.name}`,
      (message) => Buffer.from(toBinary(method.input, message)),
      (bytes) => fromBinary(method.output, bytes),
      sent,
    );
    stream.on("metadata", (received) => {
      metadata = received;
    });
    return stream;
  }
  return {
    open,
    async call(name, ...requests) {
      const stream = open(name);
      for (const request of requests) stream.write(create(FlightService.method[name].input, request));
      stream.end();
      const responses: Message[] = [];
      for await (const message of stream) responses.push(message);
      return responses as never[];
    },
    get metadata() {
      return metadata;
    },
    close: () => client.close(),
  };
}

const CONTINUED = 0xffffffff;

/** Returns the messages of an IPC stream as Flight sends them. */
export function toFlightData(stream: Uint8Array, descriptor?: Descriptor, appMetadata?: object): object[] {
  const bytes = Buffer.from(stream);
  const messages: object[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at + 4);
    if (bytes.readUInt32LE(at) !== CONTINUED || length === 0) break;
    const dataHeader = bytes.subarray(at + 8, at + 8 + length);
    const bodyAt = at + 8 + length;
    const bodyLength = bodyLengthOf(dataHeader);
    messages.push({ dataHeader, dataBody: bytes.subarray(bodyAt, bodyAt + bodyLength) });
    at = bodyAt + bodyLength;
  }
  const [first, ...others] = messages;
  const metadata = appMetadata && { appMetadata: Buffer.from(JSON.stringify(appMetadata)) };
  return [{ ...first, ...(descriptor && { flightDescriptor: descriptor }), ...metadata }, ...others];
}

/** Returns the IPC stream in the messages of Flight. */
export function fromFlightData(messages: readonly FlightData[]): Uint8Array {
  const parts = messages.flatMap(({ dataHeader, dataBody }) => {
    const prefix = Buffer.alloc(8);
    prefix.writeUInt32LE(CONTINUED, 0);
    prefix.writeUInt32LE(dataHeader.byteLength, 4);
    return [prefix, dataHeader, dataBody];
  });
  return Buffer.concat([...parts, Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])]);
}

/** Reads `bodyLength` of a Message of Arrow, its fourth field. */
function bodyLengthOf(metadata: Buffer): number {
  const table = metadata.readUInt32LE(0);
  const vtable = table - metadata.readInt32LE(table);
  if (metadata.readUInt16LE(vtable) <= 4 + 2 * 3) return 0;
  const field = metadata.readUInt16LE(vtable + 4 + 2 * 3);
  return field === 0 ? 0 : Number(metadata.readBigInt64LE(table + field));
}
