// Package fence shows that package fence refuses late holders, on real databases. Two holders of
// one lock write in transactions. Their steps are taken in random orders. It has tests alone.
// SQLite and Redis take part in every run, and PostgreSQL and MariaDB with HOLDFAST_PROOF=1.
package fence
