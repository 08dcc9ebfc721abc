package verifier

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestEventInJSON(t *testing.T) {
	for _, c := range []struct {
		event Event
		want  string
	}{
		{Event{Name: "keys_unreadable", Err: errors.New("the key set responds 500")}, `{"Name":"keys_unreadable","Err":"the key set responds 500"}`},
		{Event{Name: "keys_read", Kids: []string{"k"}}, `{"Name":"keys_read","Kids":["k"]}`},
	} {
		got, err := json.Marshal(c.event)
		if err != nil || string(got) != c.want {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
}
