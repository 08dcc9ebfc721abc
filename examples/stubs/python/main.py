"""Creates a session and refreshes it, over gRPC. Needs grpcio and protobuf: Debian's python3-grpcio, or from PyPI."""

import os
import sys
from pathlib import Path

import google
import grpc

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "gen"))
# The annotations of the contract are generated below gen/google, beside the protobuf package's own modules.
google.__path__.append(str(HERE / "gen" / "google"))

from auth.admin.v1 import session_admin_pb2, session_admin_pb2_grpc  # noqa: E402
from auth.v1 import session_pb2, session_pb2_grpc  # noqa: E402

token = Path(os.environ["SESSION_ADMIN_TOKEN_FILE"]).read_text().strip()
with grpc.insecure_channel(os.environ["SESSION_ADMIN"]) as channel:
    admin = session_admin_pb2_grpc.SessionAdminServiceStub(channel)
    created = admin.CreateSession(
        session_admin_pb2.CreateSessionRequest(subject="alice"),
        metadata=[("authorization", f"Bearer {token}")],
        timeout=5,
    )

with grpc.insecure_channel(os.environ["SESSION_PUBLIC"]) as channel:
    sessions = session_pb2_grpc.SessionServiceStub(channel)
    # A browser sends the cookie by itself. Here the code sends it.
    cookie = [("cookie", f"refresh_token={created.refresh_token}")]
    refreshed = sessions.Refresh(session_pb2.RefreshRequest(), metadata=cookie, timeout=5)
    print("refreshed", created.session.subject, len(refreshed.data.access_token) > 0)
    try:
        sessions.Refresh(session_pb2.RefreshRequest(), timeout=5)
    except grpc.RpcError as error:
        print(error.code().name)
