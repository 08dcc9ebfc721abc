"""A stock grpcio client with its defaults: one connection, a steady rate of calls. Prints how many succeeded and failed."""

import json
import sys
import threading
import time

import grpc

address, method, rate, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
call = grpc.insecure_channel(address).unary_unary(method)
slots = threading.Semaphore(200)
succeeded, failed, first = 0, 0, ""
lock = threading.Lock()


def finish(future: grpc.Future) -> None:
    global succeeded, failed, first
    error = future.exception()
    with lock:
        if error is None:
            succeeded += 1
        else:
            failed += 1
            first = first or str(error)
    slots.release()


begun = time.monotonic()
for i in range(rate * seconds):
    time.sleep(max(0, begun + i / rate - time.monotonic()))
    slots.acquire()
    call.future(b"").add_done_callback(finish)
for _ in range(200):
    slots.acquire()
print(json.dumps({"succeeded": succeeded, "failed": failed, "first": first}))
