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
		to := filepath.Join(dir, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path != "." && entry.Name()[0] == '.' || path == "dist"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(to, 0o700)
		case !isSource(entry.Name()):
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	})
	if err != nil {
		return fmt.Errorf("mutant: copy: %w", err)
	}
	return nil
}

func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".css", ".go", ".html", ".js", ".lua", ".md", ".mod", ".sum", ".svg", ".txt", ".txtar":
		return true
	}
	return false
}
