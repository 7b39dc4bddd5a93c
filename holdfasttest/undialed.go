package holdfasttest

import (
	"net"
	"time"
)

// An undialed connection is one that could not be made. Its use fails with the reason.
type undialed struct{ err error }

func (u undialed) Read([]byte) (int, error)       { return 0, u.err }
func (u undialed) Write([]byte) (int, error)      { return 0, u.err }
func (undialed) Close() error                     { return nil }
func (undialed) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (undialed) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (undialed) SetDeadline(time.Time) error      { return nil }
func (undialed) SetReadDeadline(time.Time) error  { return nil }
func (undialed) SetWriteDeadline(time.Time) error { return nil }
