package verifier

import (
	"encoding/json"
	"testing"
	"time"
)

func TestEndedAndChangedSessionsAreForgottenByBothClocks(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	for _, each := range []struct {
		storeAhead time.Duration
		after      time.Duration
		isKept     bool
	}{
		{0, 199_999 * time.Millisecond, true},
		{0, 200 * time.Second, false},
		{-time.Second, 200 * time.Second, true},
		{time.Hour, 199_999 * time.Millisecond, true},
	} {
		now := start
		s, err := resolve(Options{
			Issuer: "i", Audience: []string{"a"}, JWKSURL: "http://127.0.0.1:1",
			Clock:     func() time.Time { return now },
			Monotonic: func() time.Duration { return now.Sub(start) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r := newRevocations(s, nil)
		apply := func(members string) {
			asOf := now.Add(each.storeAhead).UTC().Format(time.RFC3339Nano)
			var b batch
			if err := json.Unmarshal([]byte(`{"cursor":"1","caughtUp":true,"asOfTime":"`+asOf+`"`+members+`}`), &b); err != nil {
				t.Fatal(err)
			}
			r.apply(&b)
		}
		expires := `"expireTime":"` + start.Add(200*time.Second).UTC().Format(time.RFC3339Nano) + `"`
		apply(`,"revocations":[{"sessionId":"a",` + expires + `}],"staleTokens":[{"sessionId":"b","minVersion":2,` + expires + `}]`)
		now = start.Add(each.after)
		apply("")
		if r.has("a", 0) != each.isKept || r.isStale("b", 1) != each.isKept || r.isStale("b", 2) {
			t.Error(each, r.expiries, r.stale)
		}
	}
}
