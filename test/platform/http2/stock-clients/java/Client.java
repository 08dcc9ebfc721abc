// A stock grpc-java client with its defaults: one connection, a steady rate of calls. Prints how many succeeded and failed.
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

public final class Client {
  static final int CALLS_AT_ONCE = 200;

  /** Messages are bytes, so that the program needs no generated code. */
  static final MethodDescriptor.Marshaller<byte[]> RAW = new MethodDescriptor.Marshaller<>() {
    @Override public InputStream stream(byte[] value) { return new ByteArrayInputStream(value); }
    @Override public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  };

  public static void main(String[] args) throws InterruptedException {
    var method = MethodDescriptor.<byte[], byte[]>newBuilder(RAW, RAW)
        .setType(MethodType.UNARY).setFullMethodName(args[1].substring(1)).build();
    long rate = Long.parseLong(args[2]);
    long calls = rate * Long.parseLong(args[3]);
    ManagedChannel channel = ManagedChannelBuilder.forTarget(args[0]).usePlaintext().build();
    var succeeded = new AtomicLong();
    var failed = new AtomicLong();
    var first = new AtomicReference<>("");
    var slots = new Semaphore(CALLS_AT_ONCE);
    long begun = System.nanoTime();
    for (long i = 0; i < calls; i++) {
      long waitNs = begun + i * 1_000_000_000L / rate - System.nanoTime();
      if (waitNs > 0) LockSupport.parkNanos(waitNs);
      slots.acquire();
      ClientCalls.asyncUnaryCall(channel.newCall(method, CallOptions.DEFAULT), new byte[0], new StreamObserver<>() {
        @Override public void onNext(byte[] response) {}
        @Override public void onError(Throwable error) {
          failed.incrementAndGet();
          first.compareAndSet("", String.valueOf(error.getMessage()).replace('"', '\''));
          slots.release();
        }
        @Override public void onCompleted() {
          succeeded.incrementAndGet();
          slots.release();
        }
      });
    }
    slots.acquire(CALLS_AT_ONCE);
    channel.shutdownNow();
    System.out.printf("{\"succeeded\": %d, \"failed\": %d, \"first\": \"%s\"}%n", succeeded.get(), failed.get(), first.get());
  }
}
