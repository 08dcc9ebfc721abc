// Package verifiergrpc requires a valid access token for every call of a gRPC server.
//
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(verifiergrpc.Unary(v)),
//		grpc.StreamInterceptor(verifiergrpc.Stream(v)),
//	)
//
// A handler has the claims of its caller by verifier.CallerClaims(ctx). A token is judged when a call begins: call
// v.Verify again while a long stream lasts.
package verifiergrpc

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"session-service.example/verifier"
)

// Unary returns an interceptor of unary calls. A call without a valid token ends with Unauthenticated and a challenge, or
// with Unavailable and `retry-after`, in its trailers.
//
// With an Origin bound tokens are accepted with a proof of the call (DPoP): `POST`, and the URL of the RPC at the origin.
func Unary(v *verifier.Verifier, options ...verifier.AdapterOptions) grpc.UnaryServerInterceptor {
	origin := originOf(options)
	return func(
		ctx context.Context, request interface{}, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (interface{}, error) {
		authorized, err := authorize(ctx, v, info.FullMethod, origin)
		if err != nil {
			return nil, err
		}
		return handler(authorized, request)
	}
}

// Stream returns an interceptor of streams, which are refused as unary calls are.
func Stream(v *verifier.Verifier, options ...verifier.AdapterOptions) grpc.StreamServerInterceptor {
	origin := originOf(options)
	return func(
		service interface{}, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
	) error {
		authorized, err := authorize(stream.Context(), v, info.FullMethod, origin)
		if err != nil {
			return err
		}
		return handler(service, &authorizedStream{stream, authorized})
	}
}

// originOf returns the origin of the last options that have one. It panics if one is no origin.
func originOf(options []verifier.AdapterOptions) (origin string) {
	for _, each := range options {
		if normal := each.NormalOrigin(); normal != "" {
			origin = normal
		}
	}
	return origin
}

// authorizedStream is a stream whose context has the claims of the caller.
type authorizedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *authorizedStream) Context() context.Context { return s.ctx }

// authorize returns the context for the handler, or the error of the call.
func authorize(
	ctx context.Context, v *verifier.Verifier, method, origin string,
) (context.Context, error) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	// If the metadata has several values, the joined text is not a valid header, so the call is refused.
	authorization := strings.Join(incoming.Get("authorization"), ", ")
	request := verifier.CallerRequest{Method: http.MethodPost, Header: http.Header{"Dpop": incoming.Get("dpop")}}
	request.Header.Set("Authorization", authorization)
	var caller verifier.Authorization
	if origin == "" {
		caller = v.Authorize(ctx, authorization)
	} else {
		request.URL = origin + method
		caller = v.AuthorizeRequest(ctx, request)
	}
	if caller.OK {
		return verifier.WithClaims(ctx, caller.Claims), nil
	}
	code, message, name := codes.Unauthenticated, "authentication failed", "Www-Authenticate"
	if caller.Status == http.StatusServiceUnavailable {
		code, message, name = codes.Unavailable, "temporarily unavailable", "Retry-After"
	}
	// If the trailer cannot be set, the caller still gets the error.
	_ = grpc.SetTrailer(ctx, metadata.Pairs(strings.ToLower(name), caller.Header[name]))
	return nil, status.Error(code, message)
}
