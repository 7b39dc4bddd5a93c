package mutant

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// modules are the parts of the repository that the checks need, beside the root package.
var modules = []string{
	"cmd", "dashboard", "docs", "fence", "holdfasttest", "internal", "lockinfo", "otelholdfast", "profholdfast", "promholdfast",
	"proof", "redisstore", "rueidisstore", "store", "storetest", "telemetry", "valkeystore",
}

// Copy copies the sources that the checks need from the repository at root into dir.
func Copy(root, dir string) error {
	if err := copyFiles(root, dir, "."); err != nil {
		return err
	}
	for _, module := range modules {
		err := fs.WalkDir(os.DirFS(root), module, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = copyFiles(root, dir, path)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("mutant: copy: %w", err)
		}
	}
	return nil
}

func copyFiles(root, dir, sub string) error {
	entries, err := os.ReadDir(filepath.Join(root, sub))
	if err != nil {
		return fmt.Errorf("mutant: copy: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
		return fmt.Errorf("mutant: copy: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() || !wanted(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, sub, entry.Name()))
		if err != nil {
			return fmt.Errorf("mutant: copy: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, sub, entry.Name()), data, 0o600); err != nil {
			return fmt.Errorf("mutant: copy: %w", err)
		}
	}
	return nil
}

func wanted(name string) bool {
	switch filepath.Ext(name) {
	case ".css", ".go", ".html", ".js", ".lua", ".md", ".mod", ".sum", ".svg", ".txtar":
		return true
	}
	return false
}
