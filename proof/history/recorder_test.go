package history

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestRecorderWritesWhatLoadReads(t *testing.T) {
	dir := t.TempDir()
	var procs sync.WaitGroup
	for _, proc := range []string{"a.1", "b.1"} {
		rec, err := Create(dir, proc)
		if err != nil {
			t.Fatal(err)
		}
		procs.Go(func() {
			var writers sync.WaitGroup
			for range 4 {
				writers.Go(func() {
					for range 100 {
						rec.Put(Record{Event: Call, Op: rec.NextOp(), Kind: Lock, Name: "n\n\x00"})
					}
				})
			}
			writers.Wait()
			if err := rec.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	procs.Wait()
	records, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 800 {
		t.Fatalf("%d records, want 800", len(records))
	}
	for i := range records[1:] {
		if records[i].At > records[i+1].At {
			t.Fatalf("record %d is out of order", i)
		}
	}
	h, err := Assemble(records)
	if err != nil || len(h.Ops) != 800 {
		t.Fatalf("%d operations, error %v; want 800", len(h.Ops), err)
	}
}

func TestLoad(t *testing.T) {
	whole := `{"at":1,"p":"a","ev":"stop"}` + "\n"
	for _, c := range []struct {
		name, data string
		records    int
		bad        bool
	}{
		{"empty", "", 0, false},
		{"whole", whole + whole, 2, false},
		{"killed in the middle of a line", whole + `{"at":2,"p":"a","e`, 1, false},
		{"broken inside", whole + "{\n" + whole, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a"+suffix), []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			records, err := Load(dir)
			if len(records) != c.records || (err != nil) != c.bad {
				t.Errorf("%d records, error %v", len(records), err)
			}
		})
	}
}
