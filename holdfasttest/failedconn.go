package holdfasttest

import (
	"net"
	"time"
)

// A failedConn is one that could not be made. Its use fails with the reason.
type failedConn struct{ err error }

func (u failedConn) Read([]byte) (int, error)       { return 0, u.err }
func (u failedConn) Write([]byte) (int, error)      { return 0, u.err }
func (failedConn) Close() error                     { return nil }
func (failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (failedConn) SetDeadline(time.Time) error      { return nil }
func (failedConn) SetReadDeadline(time.Time) error  { return nil }
func (failedConn) SetWriteDeadline(time.Time) error { return nil }
