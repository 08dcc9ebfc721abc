package verifier

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// adminAPI responds with the keys of the vectors and a feed of one batch. While refuses is true, it responds 401 to RPCs.
type adminAPI struct {
	refuses  atomic.Bool
	protocol chan int
	keys     []byte
	batch    string
}

func newAdminAPI(t *testing.T) *adminAPI {
	return &adminAPI{
		protocol: make(chan int, 1000), keys: readVectorFile(t).Keys, batch: `{"cursor":"1","caughtUp":true}`,
	}
}

func (a *adminAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.protocol <- r.ProtoMajor
	if r.Method == http.MethodGet {
		_, _ = w.Write(a.keys)
		return
	}
	if a.refuses.Load() {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code":"unauthenticated","message":"authentication failed"}`))
		return
	}
	_, _ = w.Write(envelope(a.batch))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func envelope(message string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func (a *adminAPI) follow(t *testing.T, server *httptest.Server, config *tls.Config) *Verifier {
	t.Helper()
	v, err := New(Options{
		// As a file has it that ends with a line break.
		AdminURL: server.URL, AdminToken: func() string { return "any\n" }, Issuer: "i", Audience: []string{"a"},
		TLSConfig: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	t.Cleanup(v.Close)
	return v
}

// The verifier must not use HTTP/2: there, every retry would use the same connection, even if it is dead.
func TestHTTP1OverTLS(t *testing.T) {
	api := newAdminAPI(t)
	server := httptest.NewUnstartedServer(api)
	server.EnableHTTP2 = true
	server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	v := api.follow(t, server, &tls.Config{RootCAs: roots})
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range [2]int{} {
		if major := <-api.protocol; major != 1 {
			t.Fatalf("HTTP/%d", major)
		}
	}
}

func TestReadyAfterARefusedToken(t *testing.T) {
	api := newAdminAPI(t)
	api.refuses.Store(true)
	v := api.follow(t, httptest.NewServer(api), nil)
	failure := (*RPCError)(nil)
	if err := v.Ready(context.Background()); !errors.As(err, &failure) || failure.Code != "unauthenticated" {
		t.Fatal(err)
	}
	api.refuses.Store(false)
	<-v.feed.known
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestReadyAtThePublicAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"code":"E404_NOT_FOUND","message":"not found"}}`))
	}))
	v := newAdminAPI(t).follow(t, server, nil)
	failure := (*RPCError)(nil)
	err := v.Ready(context.Background())
	if !errors.As(err, &failure) || failure.Code != "unimplemented" || !strings.HasPrefix(err.Error(), "AdminURL is not the admin API") {
		t.Fatal(err)
	}
}

// Only errors of the service end the wait.
func TestReadyWaitsForTheServiceBehindAProxy(t *testing.T) {
	api := newAdminAPI(t)
	responses := []struct {
		status int
		body   string
	}{
		{404, "404 page not found"}, {404, `{"message":"no Route matched with those values"}`}, {404, `{"code":404}`},
		{401, "<html>"}, {403, `{"message":"forbidden"}`},
	}
	var feeds atomic.Int32
	v := api.follow(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if count := int(feeds.Add(1)); count <= len(responses) {
				w.WriteHeader(responses[count-1].status)
				_, _ = w.Write([]byte(responses[count-1].body))
				return
			}
		}
		api.ServeHTTP(w, r)
	})), nil)
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestReadyAfterClose(t *testing.T) {
	unread := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(unread.Close)
	for _, options := range []Options{
		{JWKSURL: unread.URL},
		{AdminURL: unread.URL, AdminToken: func() string { return "any" }},
	} {
		options.Issuer, options.Audience = "i", []string{"a"}
		v, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan error)
		go func() { waits <- v.Ready(context.Background()) }()
		v.Close()
		if err := <-waits; !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		if err := v.Ready(context.Background()); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
}

func TestReadyAfterCloseWithWhatWasKnown(t *testing.T) {
	api := newAdminAPI(t)
	v := api.follow(t, httptest.NewServer(api), nil)
	for range [2]int{} {
		if err := v.Ready(context.Background()); err != nil {
			t.Fatal(err)
		}
		v.Close()
	}
}
