// Package fence lets storage refuse a holder that is late. A holder is late if its process stood
// still while it held a lock, its lease ended, and another holder got the lock meanwhile. No lock
// can stop the writes that such a process sends when it goes on. Storage can: every lease has a
// fencing token ([github.com/holdfast-go/holdfast.Lease.Token]) that is larger than the token of
// each holder before. Storage that keeps the largest token it has seen refuses smaller ones.
//
//	tx, err := db.BeginTx(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback()
//	if err := fence.SQL(ctx, tx, fence.PostgreSQL, lease.Name(), lease.Token()); err != nil {
//		return err // fence.ErrLate: another holder has the lock
//	}
//	// ... read, and write ...
//	return tx.Commit()
//
// docs/fencing.md shows what goes wrong with a token in each row, and has the recipes for storage
// with conditional puts, such as S3.
//
// # Table
//
// [Dialect.Schema] returns the statement that creates the table. The table has one row for each
// name: the name, the largest token, and when it was raised. It lies in the database that it
// guards, beside the tables that the holders write. A backup of that database, a restore and a
// fail-over then treat the fence and the data alike. SQL never creates the table: run Schema with
// your migrations, outside of a transaction that matters, as MySQL commits before it.
//
// A token is the number of a microsecond, above 2^50 and always below 2^53. It needs a column of
// 64 bits (bigint). In a column of 32 bits, PostgreSQL refuses it. MySQL without its strict mode
// stores 2147483647 for every token, so that all tokens are equal; SQL then returns an error.
//
// A name is the name of one lock at one Redis. Tokens of two names, or of two servers that know
// nothing of each other, do not compare. If one database is guarded by locks of several servers or
// prefixes, put the server or the prefix into the name.
//
// # The first statement
//
// SQL is the first statement of its transaction, before anything is read. It raises the fence to
// the token, and locks the row of the name until the transaction ends. So transactions under one
// name run one after the other. The statements that follow in the transaction can rely on two
// things:
//
//   - A transaction with a smaller token, whose SQL came before, has ended. Its writes are
//     committed, and are read here.
//   - A transaction with a smaller token, whose SQL comes later, is refused.
//
// A transaction that reads first and raises the fence later has neither: an earlier holder may
// commit between the two, and its write is lost or overlooked.
//
// An equal token is accepted. It belongs to the same hold, which writes in many transactions. The
// row's lock makes these run one after the other, too. SQL compares the numbers that are stored,
// and not the count of affected rows. MariaDB and MySQL count 0 rows for a late token and for an
// equal one alike, and 1 for both if the driver asks for found rows.
//
// # Isolation levels
//
// SQL is correct from READ COMMITTED to SERIALIZABLE, in these ways:
//
//   - PostgreSQL, READ COMMITTED: SQL waits for the other transaction, and then compares.
//   - PostgreSQL, REPEATABLE READ and SERIALIZABLE: if SQL had to wait and the other transaction
//     committed, PostgreSQL ends this one with the error 40001. The caller runs the whole
//     transaction again, as it must at these levels anyway.
//   - MySQL and MariaDB, all three: SQL waits, and then compares. The snapshot of REPEATABLE READ
//     begins with the first read after SQL. START TRANSACTION WITH CONSISTENT SNAPSHOT would begin
//     it before SQL: do not use it.
//   - SQLite: one transaction writes at a time. SQL waits as long as the busy timeout says, which
//     is 0 unless the program sets it. A transaction that reads before SQL may be refused with
//     SQLITE_BUSY at once.
//
// READ UNCOMMITTED shows what may be rolled back, and is not for such transactions.
//
// # Order of locks
//
// A transaction under several names calls SQL for each of them first, in the order of the names.
// Transactions that raise two names in both orders can deadlock. The database ends one of them
// (PostgreSQL 40P01, MySQL 1213), and its caller runs it again. MySQL and MariaDB can also deadlock
// when several names are raised for the first time at one moment.
//
// # Errors
//
// SQL returns an error that matches [ErrLate], a [LateError], when the storage has seen a larger
// token. It returns other errors as the driver gives them, wrapped: the database did not answer,
// the transaction must run again, the table is missing, or the name or the token is refused. After
// any error SQL has rolled the transaction back. A caller that overlooks the error therefore writes
// nothing: what follows in the transaction fails with sql.ErrTxDone.
//
// After ErrLate the caller must stop what it does under the lease. It must not try again with the
// same token, nor take the next token to write what it computed before. Another holder has the
// lock, and may have changed what the computation read. The caller may lock again, and begin anew
// with what it reads then. After other errors the caller may run the transaction again while its
// lease lasts, from SQL on.
//
// # A holder that stops inside a transaction
//
// A process that stops after SQL keeps the row locked, and holds up the next holder until its
// transaction ends. This is safe, and costs time. The databases limit it: PostgreSQL by
// idle_in_transaction_session_timeout, MariaDB by idle_transaction_timeout. Set it near the TTL.
// The ctx of SQL bounds the wait of the next holder; with SQLite, the busy timeout does. The
// stopped process finds its transaction gone.
//
// # Locks that can be fenced
//
// Tokens fence holders that are alone: of a Mutex, of a group, of an Election, and the writer of an
// RWMutex. Readers of an RWMutex and holders of a Semaphore hold beside each other with different
// tokens. A fence would refuse all of them except the last.
//
// # Sizes and retention
//
// A row is a name and two numbers. PostgreSQL has the name in the index as well. Names have 1 to
// 1024 bytes, in UTF-8, without the character 0. SQL costs one statement, and two with MySQL.
//
// A row may be deleted when no transaction with a smaller token can come any more. The database
// cannot know that: a process may be stopped for days. Names that are few stay for ever. Names that
// are many, such as one for each order, can go with what they guard, or a month after raised_at:
//
//	DELETE FROM holdfast_fence WHERE raised_at < CURRENT_TIMESTAMP - INTERVAL '30' DAY
//	DELETE FROM holdfast_fence WHERE raised_at < datetime('now', '-30 days')            -- SQLite
//
// While a row is missing, an earlier holder is not refused. The next holder's SQL makes the row
// again.
//
// # Other storage
//
// [RedisScript] fences a write to Redis. [SetHeader], [FromRequest], [Refuse] and [CheckResponse]
// carry a token over HTTP to the service that has the storage.
package fence
