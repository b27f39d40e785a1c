"""An ordinary session of a gRPC client generated from the .proto files, streams in both directions included.

grpc_client.py ADDRESS PROTO OUT generates the code of the folder PROTO into OUT first.
"""

import sys
from importlib.resources import files
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc
from ordinary_session import Failed, run
from support import Session

address, proto, out = sys.argv[1:]
Path(out).mkdir(parents=True, exist_ok=True)
parts_of_contract = ["google/api", "google/rpc", "lance/namespace"]
sources = [str(path.relative_to(proto)) for part in parts_of_contract for path in Path(proto, part).rglob("*.proto")]
includes = [f"-I{proto}", f"-I{files('grpc_tools') / '_proto'}"]
assert protoc.main(["protoc", *includes, f"--python_out={out}", f"--grpc_python_out={out}", *sources]) == 0
for package in ("lance", "lance/namespace", "lance/namespace/v1"):
    # Without a file of its own the package would be looked for in pylance, which has the same name.
    Path(out, package, "__init__.py").touch()
sys.path.insert(0, out)
import google  # noqa: E402

google.__path__.append(f"{out}/google")

from google.rpc import status_pb2  # noqa: E402
from lance.namespace.v1 import common_pb2, service_pb2, service_pb2_grpc  # noqa: E402

stub = service_pb2_grpc.LanceNamespaceServiceStub(grpc.insecure_channel(address))
service = service_pb2.DESCRIPTOR.services_by_name["LanceNamespaceService"]
MODES = {"ExistOk": "CREATE_NAMESPACE_MODE_EXIST_OK", "Cascade": "DROP_NAMESPACE_BEHAVIOR_CASCADE"}
# What is a bare value in REST is a field of the message.
BARE = {"CountTableRows": "count", "ExplainTableQueryPlan": "plan", "AnalyzeTableQueryPlan": "analysis"}
CHUNK = 100


def call(operation, id, body=None, **fields):
    method = service.methods_by_name[operation]
    request = request_of(method, {"id": id or [], **fields})
    send = getattr(stub, operation)
    try:
        if method.client_streaming:
            return plain(send(parts(request, body), timeout=30))
        if method.server_streaming:
            return {"value": b"".join(message.data.data for message in send(request, timeout=30))}
        answer = send(request, timeout=30)
    except grpc.RpcError as error:
        raise Failed(code_of(error), f"{error.code()} {error.details()}") from None
    if operation == "UpdateTableSchemaMetadata":
        return {"value": dict(answer.metadata)}
    return {"value": getattr(answer, BARE[operation])} if operation in BARE else plain(answer)


def request_of(method, fields):
    """The message of fields as REST has them: a few have another form in protobuf."""
    if "updates" in fields and method.name == "UpdateTable":
        fields["updates"] = [{"column": column, "expression": text} for column, text in fields["updates"]]
    if method.name == "UpdateFieldMetadata":
        fields["updates"] = [
            {**entry, "metadata": {key: {"value": value} for key, value in entry["metadata"].items()}}
            for entry in fields["updates"]
        ]
    for name in ("mode", "behavior"):
        if name in fields:
            fields[name] = MODES[fields[name]]
    known = {key: value for key, value in fields.items() if key in method.input_type.fields_by_name}
    return ParseDict(known, GetMessageClass(method.input_type)())


def parts(request, body):
    """The parameters with the first bytes, then the rest in pieces."""
    request.data.data = body[:CHUNK]
    yield request
    for start in range(CHUNK, len(body), CHUNK):
        part = type(request)()
        part.data.data = body[start : start + CHUNK]
        yield part


def plain(message):
    """A message as a dict, with numbers for 64-bit integers and without the wrappers of maps."""
    content = MessageToDict(message, preserving_proto_field_name=True)
    return convert(content, message)


def convert(content, message):
    for field in message.DESCRIPTOR.fields:
        value = content.get(field.name)
        if value is None:
            continue
        if field.message_type is None and field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
            content[field.name] = int(value)
        elif field.message_type is not None and not field.is_repeated:
            convert(value, getattr(message, field.name))
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            values = getattr(message, field.name)
            if field.message_type.fields_by_name["value"].message_type is not None:
                content[field.name] = {key: unwrap(convert(value[key], values[key])) for key in value}
        elif field.message_type is not None:
            content[field.name] = [convert(*pair) for pair in zip(value, getattr(message, field.name))]
    return content


def unwrap(content):
    return content["entries"] if content.keys() == {"entries"} else content


def code_of(error):
    """The Lance code in the status details."""
    status = status_pb2.Status.FromString(dict(error.trailing_metadata() or {}).get("grpc-status-details-bin", b""))
    for detail in status.details:
        answer = common_pb2.ErrorResponse()
        if detail.Unpack(answer):
            return answer.code
    return None


session = Session("gRPC stubs for Python (grpcio-tools)", "grpcio-tools")
run(session, call)
session.end()
