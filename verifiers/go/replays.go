package verifier

import (
	"crypto/sha256"
	"sync"
)

const (
	// proofLifeMs is the longest time between the first and the last moment at which a proof is valid by its `iat`.
	proofLifeMs = 2 * proofToleranceMs
	maxProofs   = 200_000
)

type proofs map[[sha256.Size]byte]struct{}

// replays remembers accepted proofs in two halves. When the young half is full, or older than proofLifeMs, the old half
// is forgotten, and the young half becomes the old one.
type replays struct {
	mu           sync.Mutex
	young, old   proofs
	youngSinceMs float64
	half         int
}

func newReplays(nowMs float64, size int) *replays {
	return &replays{young: proofs{}, old: proofs{}, youngSinceMs: nowMs, half: size / 2}
}

// isNew returns whether a proof was not known, and remembers the proof.
func (r *replays) isNew(id [sha256.Size]byte, nowMs float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := nowMs - r.youngSinceMs; age >= 2*proofLifeMs {
		r.rotate(proofs{}, nowMs)
	} else if age >= proofLifeMs {
		r.rotate(r.young, nowMs)
	}
	_, isYoung := r.young[id]
	_, isOld := r.old[id]
	if isYoung || isOld {
		return false
	}
	if len(r.young) >= r.half {
		r.rotate(r.young, nowMs)
	}
	r.young[id] = struct{}{}
	return true
}

func (r *replays) rotate(kept proofs, nowMs float64) {
	r.old, r.young, r.youngSinceMs = kept, proofs{}, nowMs
}
