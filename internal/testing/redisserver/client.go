package redisserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answerTime bounds one command of a Server's own connection.
const answerTime = 5 * time.Second

// Do sends one command on a connection of the server's own and returns the answer: string, int64,
// nil, or []any of these. An error line of the server is an error with its text. Arguments are
// strings, []byte and integers.
func (s *Server) Do(args ...any) (any, error) { return s.cli.do(answerTime, args) }

// CommandStats returns how often each command was executed since the server started, or since
// CONFIG RESETSTAT. The keys are names in lower case such as "set" or "client|setinfo". Commands
// inside scripts count as well. If the server does not answer, the map is empty, and the test of
// Start fails.
func (s *Server) CommandStats() map[string]int { return s.commandStats("calls") }

// CommandTimes is CommandStats with the microseconds that each command has taken. Those of a script
// include what it calls.
func (s *Server) CommandTimes() map[string]int { return s.commandStats("usec") }

// CPUTime returns how long the process of the server has run on the CPUs.
func (s *Server) CPUTime() (total time.Duration) {
	for line := range s.info("cpu") {
		name, seconds, _ := strings.Cut(line, ":")
		n, err := strconv.ParseFloat(seconds, 64)
		if err == nil && (name == "used_cpu_sys" || name == "used_cpu_user") {
			total += time.Duration(n * float64(time.Second))
		}
	}
	return total
}

// commandStats returns a number of each command, by its word in the statistics.
func (s *Server) commandStats(word string) map[string]int {
	stats := map[string]int{}
	for line := range s.info("commandstats") {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		_, rest, _ = strings.Cut(","+rest, ","+word+"=")
		number, _, _ := strings.Cut(rest, ",")
		if n, err := strconv.Atoi(number); err == nil {
			stats[name] = n
		}
	}
	return stats
}

func (s *Server) info(section string) func(yield func(string) bool) {
	answer, err := s.Do("INFO", section)
	text, _ := answer.(string)
	if err != nil && s.tb != nil {
		s.tb.Helper()
		s.tb.Errorf("INFO %s: %v", section, err)
	}
	return strings.SplitSeq(text, "\r\n")
}

// A client is one connection that is made when it is needed.
type client struct {
	addr string

	mu   sync.Mutex
	conn net.Conn
	rd   *bufio.Reader
}

func (c *client) ping() error {
	_, err := c.do(time.Second, []any{"PING"})
	return err
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}

func (c *client) drop() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// refused is an error line of the server; the connection is good after it.
type refused string

func (r refused) Error() string { return string(r) }

func (c *client) do(limit time.Duration, args []any) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, limit)
		if err != nil {
			return nil, err
		}
		c.conn, c.rd = conn, bufio.NewReader(conn)
	}
	answer, err := c.exchange(limit, args)
	if _, ok := err.(refused); err != nil && !ok {
		c.drop()
	}
	return answer, err
}

func (c *client) exchange(limit time.Duration, args []any) (any, error) {
	if err := c.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		var text string
		switch arg := arg.(type) {
		case string:
			text = arg
		case []byte:
			text = string(arg)
		default:
			text = fmt.Sprint(arg)
		}
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(text), text)
	}
	if _, err := c.conn.Write(out); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *client) read() (any, error) {
	line, err := c.rd.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line from the server")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, refused(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("an unknown line from the server: %q", line)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		body := make([]byte, n+2)
		_, err := io.ReadFull(c.rd, body)
		return string(body[:n]), err
	case kind == '*':
		return c.readList(int(n))
	}
	return nil, fmt.Errorf("an unknown line from the server: %q", line)
}

// readList reads an array. An error line among its elements is an element of type error.
func (c *client) readList(n int) (any, error) {
	list := make([]any, n)
	for i := range list {
		v, err := c.read()
		if line, ok := err.(refused); ok {
			v = error(line)
		} else if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}
