package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Load reads all files of dir, in the order of time. A last line without its end is what kill -9
// made of it, and is left out; anything else that is no record is an error.
func Load(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var records []Record
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		for n := 1; ; n++ {
			line, rest, whole := bytes.Cut(data, []byte{'\n'})
			if !whole {
				break
			}
			var rec Record
			if err := json.Unmarshal(line, &rec); err != nil {
				return nil, fmt.Errorf("history: %s, line %d: %w", file, n, err)
			}
			records = append(records, rec)
			data = rest
		}
	}
	// Stable: a process wrote its records of one instant in the order in which they happened.
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	return records, nil
}

// Judge loads the history in dir, and checks it.
func Judge(dir string, limits Limits) (*History, []Violation, error) {
	records, err := Load(dir)
	if err != nil {
		return nil, nil, err
	}
	h, err := Assemble(records)
	if err != nil {
		return nil, nil, err
	}
	return h, Check(h, limits), nil
}
