package judge

// Storage is numbers by name, as fencing tokens are meant for: it refuses a token that is smaller
// than one it has seen. Its users read a number and write another without a look at their lease, so
// nothing but tokens protects it. It is not safe for concurrent use.
type Storage struct {
	Count Accesses
	cells map[string]*cell
}

// Accesses are what a storage has seen.
type Accesses struct {
	Writes  int // taken
	Reads   int // answered
	Late    int // reads and writes refused because of their token
	Spoiled int // refused writes that would have overwritten another's
	Lost    int // taken writes that have overwritten another's: none, if tokens grow
}

// A cell is one number. Reader is the largest token of all, writer that of holds that exclude
// others.
type cell struct{ writer, reader, value int64 }

func (s *Storage) cell(name string) *cell {
	c := s.cells[name]
	if c == nil {
		if s.cells == nil {
			s.cells = map[string]*cell{}
		}
		c = &cell{}
		s.cells[name] = c
	}
	return c
}

// Read returns a number, unless the token is too small. The hold shares if it excludes no readers.
func (s *Storage) Read(name string, token int64, shares bool) (value int64, ok bool) {
	c := s.cell(name)
	if token < c.writer {
		s.Count.Late++
		return 0, false
	}
	s.Count.Reads++
	if c.reader = max(c.reader, token); !shares {
		c.writer = token
	}
	return c.value, true
}

// Write replaces a number, unless the token is too small. It reports whether the number was another
// than the base that the writer had read: then an update is lost.
func (s *Storage) Write(name string, token, base, value int64) (ok, lost bool) {
	c := s.cell(name)
	lost = c.value != base
	if token < c.reader {
		s.Count.Late++
		if lost {
			s.Count.Spoiled++
		}
		return false, false
	}
	s.Count.Writes++
	if lost {
		s.Count.Lost++
	}
	c.value, c.reader, c.writer = value, token, token
	return true, lost
}
