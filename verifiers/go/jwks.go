package verifier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The key set is bounded, because its source is not trusted.
const (
	maxKeySetBytes = 256 * 1024
	maxKeys        = 100
	keySetTimeout  = 5 * time.Second
)

// A key set is used for the max-age of its response, within bounds, or for defaultMaxAge if the response has none.
const (
	defaultMaxAge = time.Minute
	minMaxAge     = time.Second
	maxMaxAge     = 5 * time.Minute
)

// fetchKeys reads a key set. It returns the keys that verify access tokens, and the time for which to use them.
func fetchKeys(ctx context.Context, client *http.Client, url string) ([]*key, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, keySetTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, 0, fmt.Errorf("the key set responds %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxKeySetBytes+1))
	if err != nil {
		return nil, 0, err
	}
	if len(body) > maxKeySetBytes {
		return nil, 0, errors.New("the key set is too large")
	}
	keys, err := readKeys(string(body))
	return keys, readMaxAge(strings.Join(response.Header.Values("Cache-Control"), ", ")), err
}

func readKeys(body string) ([]*key, error) {
	set, _ := parseObject(body)
	list, ok := set["keys"].([]any)
	if !ok || len(list) > maxKeys {
		return nil, errors.New("not a key set")
	}
	keys := []*key{}
	for _, each := range list {
		if imported := importKey(each); imported != nil {
			keys = append(keys, imported)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no key that verifies access tokens")
	}
	return keys, nil
}

var maxAgePattern = regexp.MustCompile(`(?i)(?:^|[\s,])max-age="?(\d{1,9})`)

// readMaxAge returns `max-age` (RFC 9111 section 5.2.2.1), within bounds.
func readMaxAge(cacheControl string) time.Duration {
	maxAge := defaultMaxAge
	if match := maxAgePattern.FindStringSubmatch(cacheControl); match != nil {
		seconds, _ := strconv.Atoi(match[1]) // never fails: the text has at most nine digits
		maxAge = time.Duration(seconds) * time.Second
	}
	if maxAge < minMaxAge {
		return minMaxAge
	}
	if maxAge > maxMaxAge {
		return maxMaxAge
	}
	return maxAge
}
