// Command harness runs the verifier for the tests in other languages.
//
//	harness vectors FILE    prints the verdict of each case of a file of vectors, one JSON object a line
//	harness refusals FILE   prints the refusals that a verifier records in each case, one JSON object a line
//	harness follow OPTIONS  follows a service; for each line "ID TOKEN" of its input it prints the verdict, and for
//	                        "ID until TOKEN" when the token is first refused
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"session-service.example/verifier"
	"session-service.example/verifier/internal/vectors"
)

// pollInterval is the pause between two verifications of a token that is verified until it is refused. With a shorter pause, the
// fifty processes of a test would need all cores of a small machine, and would measure mostly the load that they cause.
const pollInterval = 5 * time.Millisecond

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: harness vectors FILE | refusals FILE | follow OPTIONS")
	}
	var err error
	switch os.Args[1] {
	case "vectors":
		err = runVectors(os.Args[2], func(r *vectors.Runner, one vectors.Case) (any, error) { return r.Run(one) })
	case "refusals":
		err = runVectors(os.Args[2], func(r *vectors.Runner, one vectors.Case) (any, error) { return r.Refusals(one) })
	case "follow":
		err = follow(os.Args[2])
	default:
		err = fmt.Errorf("no command %q", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func runVectors(path string, run func(*vectors.Runner, vectors.Case) (any, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file vectors.File
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	runner := vectors.NewRunner(file)
	defer runner.Close()
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	for _, one := range file.Cases {
		result, err := run(runner, one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		if err := encoder.Encode(result); err != nil {
			return err
		}
	}
	return output.Flush()
}

type followOptions struct {
	AdminURL       string          `json:"adminUrl"`
	AdminToken     string          `json:"adminToken"`
	JWKSURL        string          `json:"jwksUrl"`
	Issuer         string          `json:"issuer"`
	Audience       string          `json:"audience"`
	Policy         verifier.Policy `json:"policy"`
	MaxStalenessMs *int            `json:"maxStalenessMs"`
}

func (o followOptions) maxStaleness() time.Duration {
	switch {
	case o.MaxStalenessMs == nil:
		return 0 // the verifier then uses its default
	case *o.MaxStalenessMs == 0:
		return -1 // the verifier then introspects every token
	}
	return time.Duration(*o.MaxStalenessMs) * time.Millisecond
}

func follow(text string) error {
	var given followOptions
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return err
	}
	var mu sync.Mutex
	write := func(line map[string]any) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(line)
	}
	v, err := verifier.New(verifier.Options{
		AdminURL: given.AdminURL, AdminToken: func() string { return given.AdminToken }, Issuer: given.Issuer,
		Audience: []string{given.Audience}, Policy: given.Policy,
		MaxStaleness: given.maxStaleness(),
		JWKSURL:      given.JWKSURL,
		Report: func(event verifier.Event) {
			write(map[string]any{
				"event": event.Name, "reason": event.Reason, "count": event.Count,
				"expected": event.Expected, "received": event.Received,
			})
		},
	})
	if err != nil {
		return err
	}
	defer v.Close()
	go func() {
		if err := v.Ready(context.Background()); err != nil {
			write(map[string]any{"event": "not_ready", "error": err.Error()})
			return
		}
		write(map[string]any{"event": "ready"})
	}()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		id, token, _ := strings.Cut(lines.Text(), " ")
		go func() {
			presented := strings.TrimPrefix(token, "until ")
			verdict := v.Verify(context.Background(), presented)
			for presented != token && verdict.OK {
				time.Sleep(pollInterval)
				verdict = v.Verify(context.Background(), presented)
			}
			result := string(verdict.Reason)
			if verdict.OK {
				result = "accepted"
			}
			write(map[string]any{"id": id, "verdict": result, "at": strconv.FormatInt(time.Now().UnixMicro(), 10)})
		}()
	}
	return lines.Err()
}
