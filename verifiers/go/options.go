package verifier

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Policy says what happens while the feed is older than MaxStaleness.
type Policy string

const (
	// Introspect calls IntrospectToken for each token. It is the default.
	Introspect Policy = "introspect"
	// Refuse rejects every token with Unavailable.
	Refuse Policy = "refuse"
)

// Options of New. Issuer, Audience, and AdminURL or JWKSURL are required.
type Options struct {
	// Issuer is `iss` of every token.
	Issuer string
	// Audience lists the audiences of the verifying service. A token's `aud` must contain one of them.
	Audience []string
	// AdminURL is the admin API. It provides keys, revocation feed and introspection. Without it only JWKSURL is read:
	// a logout takes effect when the token expires, and Staleness is infinite.
	AdminURL string
	// AdminToken returns the bearer token of the admin API. It is called for every request, so that it can be rotated.
	AdminToken func() string
	// RequireDeviceBound accepts only clients that have proven possession of the device key of their session.
	RequireDeviceBound bool
	// TLSConfig is for AdminURL: authorities, and a client certificate instead of AdminToken.
	TLSConfig *tls.Config
	// JWKSURL is the URL of the key set, if it is not at the admin API.
	JWKSURL string
	// Policy is Introspect by default.
	Policy Policy
	// MaxStaleness is the greatest accepted age of the feed. Default: 5 s. A negative value introspects every token.
	MaxStaleness time.Duration
	// CacheSize is how many verified tokens are kept in memory. Default: 10,000; at least 2.
	CacheSize int
	// Report receives events for the log. It must not block.
	Report func(Event)
	// Transport replaces the connections to the admin API and to JWKSURL, for a proxy or tests.
	Transport http.RoundTripper
	// Clock is the wall clock. Default: time.Now.
	Clock func() time.Time
	// Monotonic is a clock that never jumps. Default: the time since the start of the verifier.
	Monotonic func() time.Duration
}

// Event is for the log of the verifying service. Name is one of keys_read, keys_unreadable, feed_following and
// feed_lost, of which an outage is reported once, and token_refused, which is reported once a minute for each Reason.
type Event struct {
	Name string
	Kids []string
	Err  error
	// Reason, Count, Expected and Received belong to token_refused. Refusal explains the last three.
	Reason             Reason
	Count              int
	Expected, Received map[string]string
}

// MarshalJSON writes Err as its text. Errors have no exported fields, so that a log in JSON would have {}.
func (e Event) MarshalJSON() ([]byte, error) {
	event := struct {
		Name string
		Kids []string `json:",omitempty"`
		Err  string   `json:",omitempty"`

		Reason   Reason            `json:",omitempty"`
		Count    int               `json:",omitempty"`
		Expected map[string]string `json:",omitempty"`
		Received map[string]string `json:",omitempty"`
	}{Name: e.Name, Kids: e.Kids, Reason: e.Reason, Count: e.Count, Expected: e.Expected, Received: e.Received}
	if e.Err != nil {
		event.Err = e.Err.Error()
	}
	return json.Marshal(event)
}

type settings struct {
	Options
	audiences      map[string]bool
	maxStalenessMs float64
	client         *http.Client
}

func resolve(o Options) (*settings, error) {
	if o.AdminURL == "" && o.JWKSURL == "" {
		return nil, errors.New("verifier: New needs AdminURL or JWKSURL")
	}
	if strings.TrimSpace(o.Issuer) == "" {
		return nil, errors.New("verifier: New needs an Issuer: it is empty")
	}
	if len(o.Audience) == 0 {
		return nil, errors.New("verifier: New needs an Audience")
	}
	for _, audience := range o.Audience {
		if strings.TrimSpace(audience) == "" {
			return nil, errors.New("verifier: an Audience is empty")
		}
	}
	if o.AdminURL == "" && o.Policy != "" {
		return nil, errors.New("verifier: a Policy needs AdminURL")
	}
	if o.AdminURL != "" && o.AdminToken == nil && o.TLSConfig == nil && o.Transport == nil {
		return nil, errors.New("verifier: AdminURL needs AdminToken, or TLSConfig with a client certificate")
	}
	if o.Policy == "" {
		o.Policy = Introspect
	}
	if o.Policy != Introspect && o.Policy != Refuse {
		return nil, errors.New("verifier: Policy must be Introspect or Refuse")
	}
	if o.CacheSize == 0 {
		o.CacheSize = 10_000
	}
	if o.CacheSize < 2 {
		return nil, errors.New("verifier: CacheSize must be at least 2")
	}
	if err := o.setURLs(); err != nil {
		return nil, err
	}
	o.setFunctions()
	s := &settings{Options: o, audiences: map[string]bool{}, maxStalenessMs: 5000}
	for _, audience := range o.Audience {
		s.audiences[audience] = true
	}
	if o.MaxStaleness > 0 {
		s.maxStalenessMs = milliseconds(o.MaxStaleness)
	} else if o.MaxStaleness < 0 {
		s.maxStalenessMs = 0
	}
	s.client = &http.Client{
		Transport: o.Transport,
		// Redirects are not followed: they count as failed responses.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

func (o *Options) setURLs() error {
	for _, each := range []string{o.AdminURL, o.JWKSURL} {
		parsed, err := url.Parse(each)
		// The error of url.Parse has the whole URL, which may have a password.
		if err != nil || each != "" && (parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https") {
			return errors.New("verifier: AdminURL and JWKSURL must be http:// or https:// URLs")
		}
		if each == o.AdminURL && each != "" && o.JWKSURL == "" {
			o.JWKSURL = parsed.Scheme + "://" + parsed.Host + "/.well-known/jwks.json"
		}
	}
	return nil
}

func (o *Options) setFunctions() {
	if o.Report == nil {
		o.Report = func(Event) {}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Monotonic == nil {
		start := time.Now()
		o.Monotonic = func() time.Duration { return time.Since(start) }
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			TLSClientConfig: o.TLSConfig,
			// This disables HTTP/2, over which all calls share one connection, and retries use it even if it is dead.
			TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
			DisableCompression:  true,
			MaxIdleConnsPerHost: maxIntrospections,
			IdleConnTimeout:     90 * time.Second,
		}
	}
}

func (s *settings) wallMs() float64 { return float64(s.Clock().UnixMilli()) }

func (s *settings) monotonicMs() float64 { return milliseconds(s.Monotonic()) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
