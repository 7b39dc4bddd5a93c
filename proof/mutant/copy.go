package mutant

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Copy copies the sources of the repository at root into dir.
func Copy(root, dir string) error {
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path != "." && entry.Name()[0] == '.', path == "dist":
			return fs.SkipDir
		}
		return copyFiles(root, dir, path)
	})
	if err != nil {
		return fmt.Errorf("mutant: copy: %w", err)
	}
	return nil
}

func copyFiles(root, dir, sub string) error {
	entries, err := os.ReadDir(filepath.Join(root, sub))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || !wanted(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, sub, entry.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, sub, entry.Name()), data, 0o600); err != nil {
			return err
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
