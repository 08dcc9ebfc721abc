package verifiergrpc

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"session-service.example/verifier"
)

// service responds to whom it knows the claims of.
type service struct {
	health.UnimplementedHealthServer
}

func (service) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	if verifier.CallerClaims(ctx).Sub != "user-1" {
		return nil, status.Error(codes.Internal, "no claims")
	}
	return &health.HealthCheckResponse{}, nil
}

func (service) Watch(_ *health.HealthCheckRequest, stream health.Health_WatchServer) error {
	if verifier.CallerClaims(stream.Context()).Sub != "user-1" {
		return status.Error(codes.Internal, "no claims")
	}
	return stream.Send(&health.HealthCheckResponse{})
}

// start returns a client of a server behind the interceptors, and a token that is valid if the keys are readable.
func start(t *testing.T, isReadable bool) (client health.HealthClient, token string) {
	t.Helper()
	text, err := os.ReadFile("../../../test/vectors/verifier.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Keys    json.RawMessage
		Options struct{ Issuer, Audience string }
		Cases   []struct {
			Token string
			NowMs int64
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !isReadable {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write(file.Keys)
	}))
	t.Cleanup(keys.Close)
	v, err := verifier.New(verifier.Options{
		JWKSURL: keys.URL, Issuer: file.Options.Issuer, Audience: []string{file.Options.Audience},
		Clock: func() time.Time { return time.UnixMilli(file.Cases[0].NowMs) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(Unary(v)), grpc.StreamInterceptor(Stream(v)))
	health.RegisterHealthServer(server, service{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.Dial(listener.Addr().String(), grpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return health.NewHealthClient(connection), file.Cases[0].Token
}

// call makes a unary call and a stream. It returns the code and the trailers of both, which are the same.
func call(t *testing.T, client health.HealthClient, authorization ...string) (codes.Code, metadata.MD) {
	t.Helper()
	ctx := context.Background()
	for _, value := range authorization {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", value)
	}
	var trailer metadata.MD
	_, err := client.Check(ctx, &health.HealthCheckRequest{}, grpc.Trailer(&trailer))
	stream, streamErr := client.Watch(ctx, &health.HealthCheckRequest{})
	if streamErr == nil {
		_, streamErr = stream.Recv()
	}
	if status.Code(err) != status.Code(streamErr) {
		t.Fatalf("%v, but the stream: %v", err, streamErr)
	}
	return status.Code(err), trailer
}

func TestInterceptors(t *testing.T) {
	client, token := start(t, true)
	for _, each := range []struct {
		authorization []string
		code          codes.Code
		challenge     string
	}{
		{[]string{"Bearer " + token}, codes.OK, ""},
		{nil, codes.Unauthenticated, "Bearer"},
		{[]string{"Bearer " + token[1:]}, codes.Unauthenticated, `Bearer error="invalid_token"`},
		{[]string{"Bearer " + token, "Bearer " + token}, codes.Unauthenticated, `Bearer error="invalid_token"`},
	} {
		code, trailer := call(t, client, each.authorization...)
		challenge := append(trailer.Get("www-authenticate"), "")[0]
		if code != each.code || challenge != each.challenge {
			t.Errorf("%.20q: %v %q", each.authorization, code, challenge)
		}
	}
}

func TestUnavailable(t *testing.T) {
	client, token := start(t, false)
	code, trailer := call(t, client, "Bearer "+token)
	if code != codes.Unavailable || append(trailer.Get("retry-after"), "")[0] != "1" {
		t.Fatal(code, trailer)
	}
}
