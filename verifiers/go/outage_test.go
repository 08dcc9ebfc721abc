package verifier

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// outageLimit is far above every limit of the verifier, so that only a wait without a limit reaches it.
const outageLimit = time.Minute

// followVectors follows an admin API with the options of the vectors. The wall clock is that of their first token.
func followVectors(t *testing.T, url string, options Options) (v *Verifier, token string) {
	t.Helper()
	file := readVectorFile(t)
	options.AdminURL, options.Issuer, options.Audience = url, file.Options.Issuer, []string{file.Options.Audience}
	if options.AdminToken == nil {
		options.AdminToken = func() string { return "any" }
	}
	options.Clock = func() time.Time { return time.UnixMilli(file.Cases[0].NowMs) }
	v, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v, file.Cases[0].Token
}

func startAdmin(t *testing.T, rpc http.HandlerFunc) *httptest.Server {
	keys := readVectorFile(t).Keys
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(keys)
			return
		}
		rpc(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// endlessSnapshot is a feed whose snapshot has no end.
type endlessSnapshot struct{ keys []byte }

func (e endlessSnapshot) RoundTrip(request *http.Request) (*http.Response, error) {
	body := io.Reader(bytes.NewReader(e.keys))
	if request.Method == http.MethodPost {
		body = e
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Request: request}, nil
}

func (e endlessSnapshot) Read(buffer []byte) (int, error) {
	batch := envelope(`{"cursor":"1"}`)
	size := 0
	for len(buffer)-size >= len(batch) {
		size += copy(buffer[size:], batch)
	}
	return size, nil
}

// While a large snapshot arrives, each of its batches is news, and nothing is known completely for a long time.
func TestVerdictDuringALongSnapshot(t *testing.T) {
	v, token := followVectors(t, "http://admin.invalid", Options{
		Policy: Refuse, Transport: endlessSnapshot{readVectorFile(t).Keys},
	})
	_, next := v.feed.progress()
	<-next
	ctx, cancel := context.WithTimeout(context.Background(), outageLimit)
	defer cancel()
	if verdict := v.Verify(ctx, token); verdict.Reason != Unavailable || ctx.Err() != nil {
		t.Fatalf("%q, %v", verdict.Reason, ctx.Err())
	}
}

func TestIntrospectionIsNoNoWithoutAResponse(t *testing.T) {
	var response atomic.Value
	server := startAdmin(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/IntrospectToken") {
			_, _ = io.WriteString(w, response.Load().(string))
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	v, token := followVectors(t, server.URL, Options{})
	for text, reason := range map[string]Reason{
		`{"active":true}`: "", `{"active":true,"sid":"s"}`: "", `{}`: Revoked, `{"active":false}`: Revoked,
		`null`: Unavailable, `[]`: Unavailable, `true`: Unavailable, ``: Unavailable, `{`: Unavailable,
		`{"active":"true"}`: Unavailable, `{"active":null}`: Unavailable, `{} {}`: Unavailable, `<html>`: Unavailable,
	} {
		response.Store(text)
		if verdict := v.Verify(context.Background(), token); verdict.Reason != reason {
			t.Errorf("%s: %q, not %q", text, verdict.Reason, reason)
		}
	}
}

// hangingIntrospection responds with keys alone, and counts the introspections that it never responds to.
type hangingIntrospection struct {
	keys []byte
	open atomic.Int64
	most atomic.Int64
}

func (h *hangingIntrospection) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(h.keys)), Request: request}, nil
	}
	if strings.HasSuffix(request.URL.Path, "/WatchRevocations") {
		return nil, errors.New("there is no feed")
	}
	now := h.open.Add(1)
	defer h.open.Add(-1)
	for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
	}
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func TestIntrospectionsThatHangAreFew(t *testing.T) {
	network := &hangingIntrospection{keys: readVectorFile(t).Keys}
	v, _ := followVectors(t, "http://admin.invalid", Options{Transport: network})
	tokens := map[string]bool{}
	for _, one := range readVectorFile(t).Cases {
		if one.Verdict == "accepted" && one.Feed == nil && one.Keys == nil && one.Options == nil && len(one.Requests) == 0 {
			tokens[one.Token] = true
		}
	}
	if len(tokens) <= maxIntrospections {
		t.Fatal("the vectors have too few tokens")
	}
	verdicts := make(chan Verdict)
	for token := range tokens {
		go func(token string) { verdicts <- v.Verify(context.Background(), token) }(token)
	}
	for range tokens {
		if verdict := <-verdicts; verdict.OK || verdict.Reason != Unavailable {
			t.Errorf("%q", verdict.Reason)
		}
	}
	if most := network.most.Load(); most > maxIntrospections {
		t.Errorf("%d calls at a time", most)
	}
}

func TestAdminTokenThatNoHeaderCanCarry(t *testing.T) {
	server := startAdmin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	v, _ := followVectors(t, server.URL, Options{AdminToken: func() string { return "a-secret\nb" }})
	ctx, cancel := context.WithTimeout(context.Background(), outageLimit)
	defer cancel()
	failure := (*RPCError)(nil)
	err := v.Ready(ctx)
	if !errors.As(err, &failure) || failure.Code != "unauthenticated" || strings.Contains(err.Error(), "secret") {
		t.Fatal(err)
	}
}

func TestCloseClosesAllConnections(t *testing.T) {
	api := newAdminAPI(t)
	server := httptest.NewUnstartedServer(api)
	var open sync.WaitGroup
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		}
	}
	server.Start()
	v := api.follow(t, server, nil)
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	v.Close()
	closed := make(chan struct{})
	go func() { open.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(outageLimit):
		t.Fatal("a connection is still open")
	}
}

// dyingNetwork is a TCP proxy. After die it forwards nothing on the connections from before, and does not close them either:
// so does a network that has forgotten them.
type dyingNetwork struct {
	net.Listener
	mu    sync.Mutex
	alive []*atomic.Bool
	// lost counts what clients send over dead connections.
	lost atomic.Int64
}

func startDyingNetwork(t *testing.T, target string) *dyingNetwork {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	n := &dyingNetwork{Listener: listener}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				return
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			isAlive := &atomic.Bool{}
			isAlive.Store(true)
			n.mu.Lock()
			n.alive = append(n.alive, isAlive)
			n.mu.Unlock()
			go n.forward(client, server, isAlive, &n.lost)
			go n.forward(server, client, isAlive, &atomic.Int64{})
		}
	}()
	return n
}

func (n *dyingNetwork) forward(from, to net.Conn, isAlive *atomic.Bool, lost *atomic.Int64) {
	buffer := make([]byte, 65536)
	for {
		size, err := from.Read(buffer)
		if err != nil {
			return
		}
		if !isAlive.Load() {
			lost.Add(int64(size))
		} else if _, err := to.Write(buffer[:size]); err != nil {
			return
		}
	}
}

func (n *dyingNetwork) die() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, isAlive := range n.alive {
		isAlive.Store(false)
	}
}

// What made one connection dead has probably made the idle ones dead as well. The feed must not be awaited on each of them.
func TestNoRequestOnADeadConnection(t *testing.T) {
	api := newAdminAPI(t)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	network := startDyingNetwork(t, server.Listener.Addr().String())
	follows := make(chan struct{}, 10)
	v, _ := followVectors(t, "http://"+network.Addr().String(), Options{Report: func(event Event) {
		if event.Name == "feed_following" {
			follows <- struct{}{}
		}
	}})
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-follows
	network.die()
	select {
	case <-follows:
	case <-time.After(outageLimit):
		t.Fatal("the feed is not followed again")
	}
	if lost := network.lost.Load(); lost > 0 {
		t.Fatalf("%d bytes were sent over dead connections", lost)
	}
}

// Streams that fail as soon as they are complete are requested at growing intervals, not at once again and again.
func TestStreamsThatFailWhenTheyAreComplete(t *testing.T) {
	server := startAdmin(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(append(envelope(`{"caughtUp":true}`), envelope(`{"caughtUp":1}`)...))
	})
	v, _ := followVectors(t, server.URL, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := &feed{revocations: newRevocations(v.settings, v.keys), known: make(chan struct{}), refused: make(chan struct{})}
	var limits []time.Duration
	f.follow(ctx, func(limit time.Duration) {
		if limits = append(limits, limit); len(limits) == 8 {
			cancel()
		}
	})
	if last := limits[7]; last != maxBackoff {
		t.Fatalf("waits of at most %v", limits)
	}
}
