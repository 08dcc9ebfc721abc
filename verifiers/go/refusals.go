package verifier

import "sync"

// refusalIntervalMs is the least time between two reports for the same reason.
const refusalIntervalMs = 60_000

// Refusal has the refusals for one reason. The texts are by the name of a claim, or of a header member.
type Refusal struct {
	// Count is how many tokens were refused for this reason since the verifier was created.
	Count int `json:"count"`
	// Expected is what the verifier expected of the token that was reported last.
	Expected map[string]string `json:"expected"`
	// Received is what that token had: texts of at most 200 characters, without control characters. If the signature was not
	// checked, or is not valid, anybody can have written them.
	Received map[string]string `json:"received"`
}

// State is what a verifier has refused so far, and with which keys it verifies.
type State struct {
	// Kids are the ids of the keys that verify tokens now.
	Kids []string `json:"kids"`
	// Refusals are the refusals since the verifier was created, by their reasons.
	Refusals map[Reason]Refusal `json:"refusals"`
}

// State returns what the verifier has refused so far, for a page that explains why everything is refused.
func (v *Verifier) State() State {
	v.refusals.mu.Lock()
	defer v.refusals.mu.Unlock()
	refusals := make(map[Reason]Refusal, len(v.refusals.records))
	for reason, record := range v.refusals.records {
		refusals[reason] = record.Refusal
	}
	return State{Kids: v.keys.verifyingKids(v.settings.monotonicMs()), Refusals: refusals}
}

// refusals counts refusals by their reasons. Accepted tokens never come here.
type refusals struct {
	mu      sync.Mutex
	records map[Reason]*refusalRecord
}

type refusalRecord struct {
	Refusal
	reportedAtMs float64
}

// refuse returns the verdict that refuses a token. It counts the refusal, and reports the first one of each reason in a
// minute.
func (v *Verifier) refuse(reason Reason, token string, request ProvingRequest) Verdict {
	if event, isDue := v.countRefusal(reason, token, request); isDue && !v.isClosed() {
		v.settings.Report(event)
	}
	return refuse(reason)
}

func (v *Verifier) countRefusal(reason Reason, token string, request ProvingRequest) (Event, bool) {
	nowMs := v.settings.monotonicMs()
	v.refusals.mu.Lock()
	defer v.refusals.mu.Unlock()
	record := v.refusals.records[reason]
	isDue := record == nil || nowMs-record.reportedAtMs >= refusalIntervalMs
	if record == nil {
		record = &refusalRecord{}
		v.refusals.records[reason] = record
	}
	record.Count++
	if !isDue {
		return Event{}, false
	}
	record.reportedAtMs = nowMs
	record.Expected, record.Received = v.describe(reason, token, request)
	return Event{
		Name: "token_refused", Reason: reason, Count: record.Count, Expected: record.Expected, Received: record.Received,
	}, true
}

func (v *Verifier) isClosed() bool {
	select {
	case <-v.closed:
		return true
	default:
		return false
	}
}
