package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/proof/history"
)

// A storage is a worker's connection to the resource.
type storage struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func dialResource(addr string) (*storage, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	return &storage{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

func (s *storage) close() { _ = s.conn.Close() }

func (s *storage) ask(a access) (access, error) {
	var answer access
	if err := errors.Join(s.out.Encode(a), s.in.Decode(&answer)); err != nil {
		return access{}, fmt.Errorf("resource: %w", err)
	}
	return answer, nil
}

// askSilence wishes that the network between this worker and the server fall silent.
func (s *storage) askSilence(slot int, long time.Duration) error {
	_, err := s.ask(access{Slot: slot, Mute: long})
	return err
}

// read gives the value, if the token is good; shares: that of a hold that excludes no readers.
func (s *storage) read(name string, token int64, shares bool) (value int64, ok bool, err error) {
	answer, err := s.ask(access{Name: name, Token: token, Reads: shares})
	return answer.Value, answer.Taken, err
}

// write puts value in the place of value-1, if the token is good.
func (s *storage) write(name string, token, value int64) (history.Result, error) {
	answer, err := s.ask(access{Name: name, Token: token, Write: true, Value: value, Base: value - 1})
	switch {
	case !answer.Taken:
		return history.Refused, err
	case answer.Lost:
		return history.LostUpdate, err
	}
	return history.OK, err
}
