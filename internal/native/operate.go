package native

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

func unwritten(op, name string) error {
	return &protocol.Failure{Op: op, Name: name, Reason: protocol.Unsupported, Err: errors.New("not written yet")}
}

// Break implements protocol.Operators.
func (p *Protocol) Break(ctx context.Context, name string, b protocol.Break) (bool, error) {
	return false, unwritten("break", name)
}

// Evict implements protocol.Operators.
func (p *Protocol) Evict(ctx context.Context, name string, kind protocol.Kind, id protocol.ID, by string) (bool, error) {
	return false, unwritten("evict", name)
}
