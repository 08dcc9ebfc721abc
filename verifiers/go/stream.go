package verifier

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

const (
	adminService = "/auth.admin.v1.SessionAdminService/"
	// maxMessageBytes bounds a message of the feed.
	maxMessageBytes = 16 << 20
	// flagCompressed and flagEnd are bits of the first byte of an envelope of Connect's streaming protocol.
	flagCompressed, flagEnd = 1, 2
)

// RPCError is an error of the admin API. Code is one of Connect's, such as unauthenticated.
type RPCError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *RPCError) Error() string { return e.Code + ": " + e.Message }

// notFoundOfPublicAPI is in the response of the service's public API to RPCs of the admin API.
var notFoundOfPublicAPI = []byte(`"E404_NOT_FOUND"`)

var headerText = regexp.MustCompile(`^[\x20-\x7e]+$`)

// call posts a message to an RPC of the admin API. The caller closes the body of the response.
func (s *settings) call(ctx context.Context, rpc, contentType string, body []byte) (*http.Response, error) {
	url := strings.TrimSuffix(s.AdminURL, "/") + adminService + rpc
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Connect-Protocol-Version", "1")
	if s.AdminToken != nil {
		token := strings.TrimSpace(s.AdminToken())
		if !headerText.MatchString(token) {
			return nil, &RPCError{"unauthenticated", "AdminToken has characters that a header cannot carry"}
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.Do(request)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	failure := &RPCError{}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64*1024))
	if json.Unmarshal(text, failure) != nil || failure.Code == "" {
		// A proxy responds for the service, as while the service is away: it may know no route to it.
		failure = &RPCError{"unavailable", fmt.Sprintf("the admin API responds %d", response.StatusCode)}
		if bytes.Contains(text, notFoundOfPublicAPI) {
			failure.Code = "unimplemented"
		}
	}
	return nil, failure
}

// stream calls a server-streaming RPC and hands each message to receive, until the stream ends. It returns why.
func (s *settings) stream(ctx context.Context, rpc string, message any, receive func(json []byte)) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
	response, err := s.call(ctx, rpc, "application/connect+json", body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	for {
		flags, content, err := readEnvelope(reader)
		if err != nil {
			return err
		}
		if flags&flagCompressed != 0 {
			return errors.New("the feed is compressed, which was not asked for")
		}
		if flags&flagEnd != 0 {
			return endOf(content)
		}
		receive(content)
	}
}

// readEnvelope reads five bytes, flags and length, and the content.
func readEnvelope(reader io.Reader) (flags byte, content []byte, err error) {
	var head [5]byte
	if _, err = io.ReadFull(reader, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > maxMessageBytes {
		return 0, nil, fmt.Errorf("a message of %d bytes", length)
	}
	content = make([]byte, length)
	_, err = io.ReadFull(reader, content)
	return head[0], content, err
}

func endOf(content []byte) error {
	var end struct{ Error *RPCError }
	if err := json.Unmarshal(content, &end); err != nil {
		return err
	}
	if end.Error != nil {
		return end.Error
	}
	return errors.New("the feed ended")
}
