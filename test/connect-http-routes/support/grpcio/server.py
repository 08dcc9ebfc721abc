"""A server of grpcio with server reflection, whose descriptors are those that protoc embeds in Python: without json_name."""

import sys
from concurrent import futures
from pathlib import Path

import google
import grpc

GENERATED = Path(sys.argv[1])
sys.path.insert(0, str(GENERATED))
# The installed packages `google` and `grpc` would hide the generated ones, so the latter are added to their paths.
google.__path__.append(str(GENERATED / "google"))
grpc.__path__.append(str(GENERATED / "grpc"))

import shelf_pb2  # noqa: E402
import shelf_pb2_grpc  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: E402
from grpc.reflection.v1alpha import reflection_pb2 as messages  # noqa: E402
from grpc.reflection.v1alpha import reflection_pb2_grpc  # noqa: E402

SERVICES = [service.full_name for service in shelf_pb2.DESCRIPTOR.services_by_name.values()]


class Shelf(shelf_pb2_grpc.ShelfServiceServicer, shelf_pb2_grpc.LegacyShelfServiceServicer):
    def EchoBook(self, request, context):
        return request


class Reflection(reflection_pb2_grpc.ServerReflectionServicer):
    """As grpcio-reflection: the descriptors of the pool, with all that they import."""

    def ServerReflectionInfo(self, request_iterator, context):
        for request in request_iterator:
            yield self.answer(request)

    def answer(self, request):
        pool = descriptor_pool.Default()
        try:
            if request.HasField("file_by_filename"):
                return files(pool.FindFileByName(request.file_by_filename))
            if request.HasField("file_containing_symbol"):
                return files(pool.FindFileContainingSymbol(request.file_containing_symbol))
        except KeyError as error:
            not_found = messages.ErrorResponse(error_code=grpc.StatusCode.NOT_FOUND.value[0], error_message=str(error))
            return messages.ServerReflectionResponse(error_response=not_found)
        services = [messages.ServiceResponse(name=name) for name in SERVICES]
        return messages.ServerReflectionResponse(list_services_response=messages.ListServiceResponse(service=services))


def files(file):
    found = {}

    def add(one):
        if one.name in found:
            return
        proto = descriptor_pb2.FileDescriptorProto()
        one.CopyToProto(proto)
        found[one.name] = proto.SerializeToString()
        for dependency in one.dependencies:
            add(dependency)

    add(file)
    response = messages.FileDescriptorResponse(file_descriptor_proto=found.values())
    return messages.ServerReflectionResponse(file_descriptor_response=response)


server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
shelf_pb2_grpc.add_ShelfServiceServicer_to_server(Shelf(), server)
shelf_pb2_grpc.add_LegacyShelfServiceServicer_to_server(Shelf(), server)
reflection_pb2_grpc.add_ServerReflectionServicer_to_server(Reflection(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(None)
