// A stock grpc-go client with its defaults: one connection, a steady rate of calls. Prints how many succeeded and failed.
package main

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

// raw passes messages as bytes, so that the program needs no generated code.
type raw struct{}

func (raw) Marshal(value any) ([]byte, error)       { return *(value.(*[]byte)), nil }
func (raw) Unmarshal(bytes []byte, value any) error { *(value.(*[]byte)) = bytes; return nil }
func (raw) Name() string                            { return "proto" }

func main() {
	address, method := os.Args[1], os.Args[2]
	rate, _ := strconv.Atoi(os.Args[3])
	seconds, _ := strconv.Atoi(os.Args[4])
	encoding.RegisterCodec(raw{})
	connection, err := grpc.Dial(address, grpc.WithInsecure())
	if err != nil {
		panic(err)
	}
	var succeeded, failed int64
	var first atomic.Value
	first.Store("")
	var calls sync.WaitGroup
	slots := make(chan struct{}, 200)
	begun := time.Now()
	for i := 0; i < rate*seconds; i++ {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		slots <- struct{}{}
		calls.Add(1)
		go func() {
			defer func() { <-slots; calls.Done() }()
			request, response := []byte{}, []byte{}
			if err := connection.Invoke(context.Background(), method, &request, &response); err != nil {
				atomic.AddInt64(&failed, 1)
				first.CompareAndSwap("", err.Error())
			} else {
				atomic.AddInt64(&succeeded, 1)
			}
		}()
	}
	calls.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"succeeded": succeeded, "failed": failed, "first": first.Load()})
}
