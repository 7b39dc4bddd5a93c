// Package security tests what SECURITY.md promises, on real servers. It has tests alone.
package security
