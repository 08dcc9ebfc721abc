package vectors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// network replaces the HTTP transport. It responds with a key set and one stream of the feed, and fails all other requests.
type network struct {
	keys  json.RawMessage
	feeds chan io.ReadCloser
	feed  *io.PipeWriter
}

func newNetwork(keys json.RawMessage) *network {
	reader, writer := io.Pipe()
	n := &network{keys: keys, feeds: make(chan io.ReadCloser, 1), feed: writer}
	n.feeds <- reader
	return n
}

func (n *network) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, "/WatchRevocations") {
		select {
		case body := <-n.feeds:
			return &http.Response{StatusCode: 200, Body: body, Request: request}, nil
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	if !strings.HasSuffix(request.URL.Path, "/jwks") {
		return nil, errors.New("there is no such service")
	}
	status := 200
	if string(n.keys) == "null" {
		status = 503
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(n.keys)), Request: request}, nil
}

// deliver sets the clock to the time of each batch and writes the batch. It returns when the last one has been applied.
func (n *network) deliver(events []Event, at *clock) error {
	for index, event := range events {
		message := binary.BigEndian.AppendUint32(nil, uint32(len(event.Batch)))
		if index == 0 {
			at.set(event.AtMs)
			message = append([]byte{0}, message...)
		}
		if _, err := n.feed.Write(append(message, event.Batch...)); err != nil {
			return err
		}
		// The verifier has applied this message when it reads the first byte of the next one.
		if index+1 < len(events) {
			if err := n.barrier(events[index+1].AtMs, at); err != nil {
				return err
			}
		}
	}
	if len(events) == 0 {
		return nil
	}
	_, err := n.feed.Write([]byte{0})
	return err
}

func (n *network) barrier(nextMs int64, at *clock) error {
	_, err := n.feed.Write([]byte{0})
	at.set(nextMs)
	return err
}
