package workload

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// A proxy stands between one worker and the server, so that the network can fall silent for that worker alone: nothing
// is lost and nothing is closed, but no byte moves until it is let go, and then all arrive late.
type proxy struct {
	listener net.Listener
	server   string
	serving  sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]struct{} // nil: closed
	silences int                   // under way
	open     chan struct{}         // closed when bytes may move
}

func newProxy(server string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("workload: proxy: %w", err)
	}
	p := &proxy{listener: listener, server: server, conns: map[net.Conn]struct{}{}, open: make(chan struct{})}
	close(p.open)
	p.serving.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// silence stops all bytes for a while. It returns at once; several silences last until all are over.
func (p *proxy) silence(long time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return
	}
	if p.silences++; p.silences == 1 {
		p.open = make(chan struct{})
	}
	time.AfterFunc(long, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.silences--; p.silences == 0 {
			close(p.open)
		}
	})
}

// close ends all connections, silent or not.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.serving.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		if p.conns == nil {
			_, _ = client.Close(), server.Close()
		} else {
			p.conns[client], p.conns[server] = struct{}{}, struct{}{}
			p.serving.Go(func() { p.carry(client, server) })
			p.serving.Go(func() { p.carry(server, client) })
		}
		p.mu.Unlock()
	}
}

// carry moves bytes one way; when one side ends, so does the other.
func (p *proxy) carry(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		<-open
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
