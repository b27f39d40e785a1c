"""A gRPC client that knows nothing but the address: everything else comes from server reflection."""

import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "lance.namespace.v1.LanceNamespaceService"

channel = grpc.insecure_channel(sys.argv[1])
reflection = ProtoReflectionDescriptorDatabase(channel)
assert SERVICE in reflection.get_services(), reflection.get_services()
service = DescriptorPool(reflection).FindServiceByName(SERVICE)
assert len(service.methods) == 54, len(service.methods)


def call(name, **fields):
    method = service.methods_by_name[name]
    request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    stub = channel.unary_unary(f"/{SERVICE}/{name}", request.SerializeToString, response.FromString)
    return stub(request(**fields), timeout=10)


call("CreateNamespace", id=["reflected"])
call("DeclareTable", id=["reflected", "t"])
described = call("DescribeTable", id=["reflected", "t"], check_declared=True)
assert described.table == "t" and described.is_only_declared, described
try:
    call("DescribeTable", id=["reflected", "missing"])
    raise SystemExit("describing a missing table must fail")
except grpc.RpcError as error:
    assert error.code() is grpc.StatusCode.NOT_FOUND, error
