package verifier

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// maxSignatures is how many results of signature checks are remembered.
const maxSignatures = 2048

// ErrClosed is the error that Ready returns after Close, unless keys and revocations were known before.
var ErrClosed = errors.New("the verifier is closed")

// Verifier decides whether to accept access tokens. Make one for each process. It is safe for concurrent use.
type Verifier struct {
	settings      *settings
	keys          *keySet
	feed          *feed
	introspection *introspection
	cache         *recentlyUsed[*checked]
	signatures    *recentlyUsed[knownSignature]
	replays       *replays
	refusals      *refusals
	close         context.CancelFunc
	// closed is a channel that Close closes.
	closed <-chan struct{}
	// staleAfterBatches is the number of received batches when the feed was last found stale. While the number is the
	// same, the feed is still stale.
	staleAfterBatches atomic.Int64
}

// New creates a verifier: it checks tokens locally, and follows the key set and the revocation feed until Close.
func New(options Options) (*Verifier, error) {
	s, err := resolve(options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &Verifier{
		settings: s, keys: newKeySet(ctx, s), close: cancel, closed: ctx.Done(),
		cache: newRecentlyUsed[*checked](s.CacheSize), signatures: newRecentlyUsed[knownSignature](maxSignatures),
		replays:  newReplays(s.monotonicMs(), maxProofs),
		refusals: &refusals{records: map[Reason]*refusalRecord{}},
	}
	v.staleAfterBatches.Store(-1)
	if s.AdminURL != "" {
		v.feed = newFeed(ctx, s, v.keys)
		if s.Policy == Introspect {
			v.introspection = newIntrospection(ctx, s)
		}
	}
	return v, nil
}

// Ready waits until keys and revocations are known. It returns an error while the admin token is refused or lacks the
// scope `watch`, or AdminURL is not the admin API. The verifier continues to retry, since that may change: call Ready
// again. After Close it returns ErrClosed, unless keys and revocations were known before.
func (v *Verifier) Ready(ctx context.Context) error {
	if v.feed != nil {
		if err := v.feed.wait(ctx, v.closed); err != nil {
			return err
		}
	}
	select {
	case <-v.keys.ready: // Close does not change this
		return nil
	default:
	}
	select {
	case <-v.keys.ready:
		return nil
	case <-v.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes all connections. Later verdicts use the revocations that were known at that time, until they are stale.
func (v *Verifier) Close() {
	v.close()
	v.settings.client.CloseIdleConnections()
}

// StalenessMs returns the age of the known revocations. It is infinite before the feed has delivered them, and without a
// feed.
func (v *Verifier) StalenessMs() float64 {
	if v.feed == nil {
		return math.Inf(1)
	}
	return v.feed.stalenessMs(v.settings.monotonicMs(), v.settings.wallMs())
}

// Verify decides whether to accept an access token. It calls the service only if the token's key is unknown, or if the
// feed is stale and the policy is Introspect.
func (v *Verifier) Verify(ctx context.Context, token string) Verdict {
	return v.verify(ctx, presented{token: token})
}

// VerifyBound decides whether to accept an access token that is bound to a key, with the proof of its request (DPoP,
// RFC 9449 section 7). A proof is accepted once.
func (v *Verifier) VerifyBound(ctx context.Context, token string, request ProvingRequest) Verdict {
	verdict := v.verify(ctx, presented{token, true})
	if !verdict.OK {
		return verdict
	}
	proof, reason := verifyProof(request, token, v.settings.wallMs())
	if reason != "" {
		return v.refuse(reason, token, request)
	}
	cnf, _ := verdict.Claims.All["cnf"].(map[string]any)
	switch {
	case cnf["jkt"] != proof.thumbprint:
		return v.refuse(ProofOtherKey, token, request)
	case !v.replays.isNew(proof.id, v.settings.monotonicMs()):
		return v.refuse(ProofReplayed, token, request)
	}
	return verdict
}

func (v *Verifier) verify(ctx context.Context, given presented) Verdict {
	if known, ok := v.cache.get(given.token); ok && !known.key.withdrawn.Load() {
		if known.isBound && !given.allowsBound {
			return v.refuse(NotBearer, given.token, ProvingRequest{})
		}
		return v.judge(ctx, given, known)
	}
	entry, reason := v.check(given)
	if reason == UnknownKey {
		// The key may have been published after the key set was read.
		isReadable := v.keys.refresh(ctx)
		if entry, reason = v.check(given); reason == UnknownKey && !isReadable {
			reason = Unavailable
		}
	}
	if entry == nil {
		return v.refuse(reason, given.token, ProvingRequest{})
	}
	v.cache.set(given.token, entry)
	return v.judge(ctx, given, entry)
}

// judge decides about a valid token by the facts that can change: its key, its time, its session, the age of the feed.
func (v *Verifier) judge(ctx context.Context, given presented, entry *checked) Verdict {
	for until := (time.Time{}); ; {
		// The age is read before the revocations. In the other order, a batch that arrives in between could make outdated
		// revocations look fresh.
		isFresh := v.feed == nil || v.StalenessMs() <= v.settings.maxStalenessMs
		if changed := v.verdictByChange(ctx, given, entry); changed != nil {
			return *changed
		}
		if isFresh {
			return entry.accepted()
		}
		// If this process was stopped, batches may have arrived that it has not read yet. It waits for them briefly, also while
		// a long snapshot arrives, of which each batch is news.
		batches, next := v.feed.progress()
		if int64(batches) == v.staleAfterBatches.Load() || !until.IsZero() && time.Now().After(until) {
			return v.judgeStale(ctx, given, entry)
		}
		if until.IsZero() {
			until = time.Now().Add(readingLimit)
		}
		select {
		case <-next:
		case <-time.After(readingGrace):
			v.staleAfterBatches.Store(int64(batches))
		case <-ctx.Done():
			return v.refuse(Unavailable, given.token, ProvingRequest{})
		}
	}
}

// judgeStale decides about a valid token while the feed is stale, as the policy says.
func (v *Verifier) judgeStale(ctx context.Context, given presented, entry *checked) Verdict {
	if v.introspection == nil {
		return v.refuse(Unavailable, given.token, ProvingRequest{})
	}
	verdict := v.introspection.introspect(ctx, given.token, entry.accepted(), v.settings.monotonicMs())
	if verdict.OK {
		// During the call, the feed may have delivered a revocation that the service did not know when it responded.
		if changed := v.verdictByChange(ctx, given, entry); changed != nil {
			return *changed
		}
		return verdict
	}
	return v.refuse(verdict.Reason, given.token, ProvingRequest{})
}

// verdictByChange returns why a token that was valid is not accepted any more; nil if nothing has changed.
func (v *Verifier) verdictByChange(ctx context.Context, given presented, entry *checked) *Verdict {
	var changed Verdict
	switch {
	case entry.key.withdrawn.Load():
		// The token's key was revoked or removed from the key set, perhaps while this call waited, so the token is
		// checked again.
		changed = v.verify(ctx, given)
	case v.settings.wallMs() >= entry.expiresAtMs:
		changed = v.refuse(Expired, given.token, ProvingRequest{})
	case v.feed != nil && v.feed.has(entry.claims.Sid, entry.createdAtMs):
		changed = v.refuse(Revoked, given.token, ProvingRequest{})
	case v.feed != nil && v.feed.isStale(entry.claims.Sid, entry.claims.Sv):
		changed = v.refuse(Stale, given.token, ProvingRequest{})
	case !v.keys.isTrusted(v.settings.monotonicMs()):
		changed = v.refuse(Unavailable, given.token, ProvingRequest{})
	default:
		return nil
	}
	return &changed
}
