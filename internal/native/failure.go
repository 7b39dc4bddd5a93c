package native

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// failure returns the error that a reply to a plain command about these keys tells of; nil if the
// reply is an answer.
func (r *resource) failure(op string, reply wire.Reply, keys ...any) error {
	return r.failureOf(&script{Script: wire.Script{Op: op}}, reply, keys...)
}

func (r *resource) failureOf(s *script, reply wire.Reply, keys ...any) error {
	err := s.Failure(r.spec.Name, reply, keys)
	if err == nil {
		return nil
	}
	var failure *protocol.Failure
	if wire.IsMisrouted(reply) && errors.As(err, &failure) && r.p.servers.KnownSingle() {
		failure.Err = fmt.Errorf("the client takes a cluster for a single server, "+
			"as some do that may not ask for the slots (+cluster|slots): %w", failure.Err)
	}
	return r.at(reply, err)
}

// at names the server that was asked in an error about its reply, if it is known.
func (r *resource) at(reply wire.Reply, err error) error {
	if reply.Node != "" {
		return wire.At(reply.Node, err)
	}
	return wire.At(r.p.config.Node, err)
}
