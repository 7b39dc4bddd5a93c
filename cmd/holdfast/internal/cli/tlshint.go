package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// TLSHint says in words that one side speaks TLS and the other does not. It is empty if that is not
// so. A server that is spoken to in the wrong way hangs up, or waits for more, and says no more. So
// tlsHint connects once more and greets it in the other way. It sends no password.
func TLSHint(ctx context.Context, url string) string {
	address, encrypted := server.Address(url)
	if address == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	switch {
	case encrypted && speaksPlain(ctx, address):
		return "the server there speaks no TLS, and rediss:// is TLS: use redis://, or the port that speaks TLS"
	case !encrypted && speaksTLS(ctx, address):
		return "the server there speaks TLS, and redis:// does not: use rediss://, or a port without TLS"
	}
	return ""
}

// speaksPlain reports whether a server answers without TLS.
func speaksPlain(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	until, _ := ctx.Deadline()
	answer := make([]byte, 1)
	_ = conn.SetDeadline(until)
	_, _ = conn.Write([]byte("*1\r\n$4\r\nPING\r\n")) // the in-memory server reads no inline commands
	n, _ := conn.Read(answer)
	return n == 1 && (answer[0] == '+' || answer[0] == '-') // an answer, or an error: who are you?
}

// speaksTLS reports whether a server answers the greeting of TLS.
func speaksTLS(ctx context.Context, address string) bool {
	// Nothing is sent but the greeting, and the answer is not believed: any certificate will do.
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		conn.Close()
		return true
	}
	var ended *net.OpError // an alert of TLS: the server wants a certificate of the client
	return errors.As(err, &ended) && ended.Op == "remote error"
}
