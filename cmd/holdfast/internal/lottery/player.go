package lottery

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// A player is the hall's end of a worker process.
type player struct {
	number int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	out    *json.Encoder
	gone   chan struct{} // closed when the process has been reaped
}

// start starts a worker. report is called for all that it says, from one goroutine, then ended once.
func start(number int, command []string, stderr io.Writer, s setup, said func(*player, report), ended func(*player, error)) (*player, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("worker %d: %w", number, err)
	}
	p := &player{number: number, cmd: cmd, stdin: stdin, out: json.NewEncoder(stdin), gone: make(chan struct{})}
	go func() {
		reports := json.NewDecoder(stdout)
		for {
			var r report
			if reports.Decode(&r) != nil {
				break
			}
			said(p, r)
		}
		err := cmd.Wait()
		close(p.gone)
		ended(p, err)
	}()
	p.send(order{Setup: &s})
	return p, nil
}

// send cannot fail in a way that matters: a worker that does not read any more ends, and that is heard.
func (p *player) send(o order) {
	_ = p.out.Encode(o)
}

// stop lets the workers leave in good order, then kills those that do not.
func stop(players []*player, patience time.Duration) {
	for _, p := range players {
		_ = p.stdin.Close()
	}
	var all sync.WaitGroup
	for _, p := range players {
		all.Go(func() {
			late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
			defer late.Stop()
			<-p.gone
		})
	}
	all.Wait()
}
