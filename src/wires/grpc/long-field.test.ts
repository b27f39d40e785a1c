import assert from "node:assert/strict";
import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, test } from "vitest";
import { FlightDataSchema } from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { InsertIntoTableRequestSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { encodeFrame, FrameReader } from "./frame.ts";
import { continuedMessage, isContinued, type LongField, putLongField } from "./long-field.ts";

const FLIGHT = [FlightDataSchema.field.dataBody] as const;
const INSERT = [InsertIntoTableRequestSchema.field.data, HttpBodySchema.field.data] as const;

const LONG = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at * 7));

/** Reads frames as a stream does: returns each message with its continuations joined, and the number of messages in all. */
function read(type: DescMessage, field: LongField, body: Buffer, size: number) {
  const reader = new FrameReader(1 << 20, field);
  const found: { message: Message; pieces: Uint8Array[] }[] = [];
  let [messages, bytes] = [0, 0];
  for (let start = 0; start < body.length; start += size) {
    reader.push(body.subarray(start, start + size));
    for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
      const { piece, continues } = frame;
      messages += 1;
      bytes += frame.bytes;
      if (continues && piece !== undefined) {
        const message = continuedMessage(type, field, piece);
        assert.ok(isContinued(message));
        found.at(-1)?.pieces.push(longIn(message, field));
      } else {
        const message = fromBinary(type, frame.data);
        assert.ok(!isContinued(message));
        found.push({ message, pieces: piece === undefined ? [] : [piece] });
      }
    }
  }
  assert.equal(reader.partial, false);
  assert.equal(bytes, body.length);
  const join = ({ message, pieces }: (typeof found)[number]) =>
    pieces.length === 0 ? message : putLongField(message, field, Buffer.concat(pieces));
  return { found: found.map(join), messages };
}

function longIn(message: Message, field: readonly DescField[]): Uint8Array {
  let inner = message as unknown as Record<string, unknown>;
  for (const { localName } of field) inner = inner[localName] as typeof inner;
  return inner as unknown as Uint8Array;
}

const framed = (type: DescMessage, messages: readonly Message[]) =>
  Buffer.concat(messages.map((message) => encodeFrame(toBinary(type, message), false)));

describe("a message that is cut at its long field", () => {
  const flights = [
    create(FlightDataSchema, { dataHeader: Buffer.from("schema") }),
    create(FlightDataSchema, {
      flightDescriptor: { path: ["t"] },
      dataHeader: LONG.subarray(0, 40_000),
      dataBody: LONG,
    }),
    create(FlightDataSchema, { dataHeader: Buffer.from("small"), dataBody: LONG.subarray(0, 100) }),
    create(FlightDataSchema, { dataBody: LONG }),
  ];
  const inserts = [
    create(InsertIntoTableRequestSchema, { id: ["t"], data: { contentType: "a/b", data: LONG } }),
    create(InsertIntoTableRequestSchema, { data: { data: LONG } }),
    create(InsertIntoTableRequestSchema, { data: { data: Buffer.from("end") } }),
  ];

  for (const [type, field, messages] of [
    [FlightDataSchema, FLIGHT, flights],
    [InsertIntoTableRequestSchema, INSERT, inserts],
  ] as const)
    test(`${type.name} has all of its fields however the bytes are cut`, () => {
      const body = framed(type, messages);
      for (const size of [1, 9, 1000, 16_384, 65_536, body.length]) {
        const result = read(type, field, body, size);
        assert.deepEqual(
          result.found.map((message) => Buffer.from(toBinary(type as DescMessage, message))),
          (messages as readonly Message[]).map((message) =>
            Buffer.from(toBinary(type as DescMessage, message)),
          ),
        );
        assert.equal(result.messages > messages.length, size < 100_000, `${size}`);
      }
    });

  test("the last value of a long field that comes twice wins", () => {
    const once = toBinary(FlightDataSchema, create(FlightDataSchema, { dataBody: Buffer.from("first") }));
    const again = toBinary(FlightDataSchema, create(FlightDataSchema, { dataBody: LONG }));
    const body = encodeFrame(Buffer.concat([once, again]), false);
    const [message] = read(FlightDataSchema, FLIGHT, body, 16_384).found;
    assert.ok(LONG.equals(longIn(message as Message, FLIGHT)));
  });
});

describe("a message is read as a whole", () => {
  const long = toBinary(FlightDataSchema, create(FlightDataSchema, { dataBody: LONG }));
  const late = toBinary(FlightDataSchema, create(FlightDataSchema, { dataHeader: LONG }));
  const group = new BinaryWriter().tag(7, WireType.StartGroup).tag(7, WireType.EndGroup).finish();
  for (const [what, data] of Object.entries({
    "if other fields follow the long one": Buffer.concat([long, late]),
    "if another field is long": late,
    "if it has a group": Buffer.concat([group, long]),
    "if its field is longer than the message": long.subarray(0, -1),
    "if it is no message": Buffer.alloc(100_000, 0xff),
  }))
    test(what, () => {
      const reader = new FrameReader(1 << 20, FLIGHT);
      const body = encodeFrame(data, false);
      for (let start = 0; start < body.length; start += 16_384) {
        assert.equal(reader.next(), undefined);
        reader.push(body.subarray(start, start + 16_384));
      }
      assert.deepEqual(reader.next(), { compressed: false, data: Buffer.from(data), bytes: body.length });
    });

  test("if it is compressed", () => {
    const reader = new FrameReader(1 << 20, FLIGHT);
    const body = encodeFrame(long, true);
    reader.push(body.subarray(0, 100_000));
    assert.equal(reader.next(), undefined);
    reader.push(body.subarray(100_000));
    assert.equal(reader.next()?.data.byteLength, long.byteLength);
  });
});
