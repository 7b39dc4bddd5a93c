package holdfast

import "github.com/holdfast-go/holdfast/internal/protocol"

// Settle tells what the constructor of a kind refuses of options.
func Settle(c *Client, kind, name string, options ...Option) error {
	_, err := c.settled(kind, name, options)
	return err
}

// NewOn makes a client on any protocol, for tests.
func NewOn(p protocol.Protocol, config *Config) (*Client, error) {
	filled, err := config.filled()
	if err != nil {
		return nil, err
	}
	return newClient(p, filled), nil
}
