package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	pb "contract/lance/namespace/v1"

	"google.golang.org/grpc/status"
)

// session counts the calls of this client and those whose result was the right one.
type session struct {
	calls, passed int
}

// check makes one call and checks its result; a failed one is told and the session goes on.
func (s *session) check(call string, work func() error) {
	s.calls++
	if err := work(); err != nil {
		fmt.Fprintf(os.Stderr, "Go: %s: %v\n", call, err)
		return
	}
	s.passed++
}

// rejected checks that a call fails with a code of the error table, which is in the details of its status.
func (s *session) rejected(call string, code int32, work func() error) {
	s.check(call, func() error {
		err := work()
		if err == nil {
			return errors.New("the call succeeded")
		}
		for _, detail := range status.Convert(err).Details() {
			if answer, ok := detail.(*pb.ErrorResponse); ok {
				return equal(answer.GetCode(), code)
			}
		}
		return fmt.Errorf("no code in the details of %w", err)
	})
}

// end prints the figures as one line of JSON; the program fails when a call did.
func (s *session) end(client, version string) {
	line, _ := json.Marshal(map[string]any{"client": client, "version": version, "calls": s.calls, "passed": s.passed})
	fmt.Println(string(line))
	if s.passed < s.calls {
		os.Exit(1)
	}
}

func equal(got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// just drops the answer of a call that only has to succeed.
func just[T any](_ T, err error) error {
	return err
}

// is compares a part of the answer of a call.
func is[T any](answer T, err error, part func(T) any, want any) error {
	if err != nil {
		return err
	}
	return equal(part(answer), want)
}
