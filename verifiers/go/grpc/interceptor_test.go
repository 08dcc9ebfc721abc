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

// service succeeds if the context has the claims of the expected caller.
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

type vectorCase struct {
	Token, Verdict string
	NowMs          int64
	Requests       []struct{ URL, Proof string }
}

// start returns a client of a server behind the interceptors, and the cases of the vectors. The token of the first case
// is valid if the keys are readable.
func start(t *testing.T, isReadable bool, options ...verifier.AdapterOptions) (health.HealthClient, []vectorCase) {
	t.Helper()
	text, err := os.ReadFile("../../../test/vectors/verifier.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Keys    json.RawMessage
		Options struct{ Issuer, Audience string }
		Cases   []vectorCase
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
	server := grpc.NewServer(grpc.UnaryInterceptor(Unary(v, options...)), grpc.StreamInterceptor(Stream(v, options...)))
	health.RegisterHealthServer(server, service{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.Dial(listener.Addr().String(), grpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return health.NewHealthClient(connection), file.Cases
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
	client, cases := start(t, true)
	token := cases[0].Token
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
	client, cases := start(t, false)
	token := cases[0].Token
	code, trailer := call(t, client, "Bearer "+token)
	if code != codes.Unavailable || append(trailer.Get("retry-after"), "")[0] != "1" {
		t.Fatal(code, trailer)
	}
}

// proofFor returns a bound token of the vectors, and a proof for an RPC.
func proofFor(t *testing.T, cases []vectorCase, method string) (token, proof string) {
	t.Helper()
	for _, one := range cases {
		if len(one.Requests) == 1 && one.Requests[0].URL == "https://api.example"+method && one.Verdict == "accepted" {
			return one.Token, one.Requests[0].Proof
		}
	}
	t.Fatal("no proof for ", method)
	return "", ""
}

func TestBoundTokens(t *testing.T) {
	const check, watch = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
	ofAPI := []verifier.AdapterOptions{{Origin: "https://api.example"}}
	spelt := []verifier.AdapterOptions{{Origin: "https://API.example/"}}
	badProof := `DPoP error="invalid_dpop_proof", algs="ES256 RS256 EdDSA Ed25519"`
	for name, each := range map[string]struct {
		options   []verifier.AdapterOptions
		method    string
		times     int
		code      codes.Code
		challenge string
	}{
		"a proof of the call":     {ofAPI, check, 1, codes.OK, ""},
		"another spelling":        {spelt, check, 1, codes.OK, ""},
		"a proof of another call": {ofAPI, watch, 1, codes.Unauthenticated, badProof},
		"two proofs":              {ofAPI, check, 2, codes.Unauthenticated, badProof},
		"without an origin":       {nil, check, 1, codes.Unauthenticated, `Bearer error="invalid_token"`},
	} {
		t.Run(name, func(t *testing.T) {
			client, cases := start(t, true, each.options...)
			token, proof := proofFor(t, cases, each.method)
			ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "DPoP "+token)
			for n := 0; n < each.times; n++ {
				ctx = metadata.AppendToOutgoingContext(ctx, "dpop", proof)
			}
			var trailer metadata.MD
			_, err := client.Check(ctx, &health.HealthCheckRequest{}, grpc.Trailer(&trailer))
			challenge := append(trailer.Get("www-authenticate"), "")[0]
			if status.Code(err) != each.code || challenge != each.challenge {
				t.Fatalf("%v %q", err, challenge)
			}
		})
	}
	client, cases := start(t, true, ofAPI...)
	token, proof := proofFor(t, cases, watch)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "DPoP "+token, "dpop", proof)
	stream, err := client.Watch(ctx, &health.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal("a stream with its proof: ", err)
	}
}
