package holdfast

import "github.com/holdfast-go/holdfast/internal/protocol"

// NewOn makes a client on any protocol, for tests.
func NewOn(p protocol.Protocol, config *Config) (*Client, error) {
	filled, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return newClient(p, filled, processID()), nil
}
