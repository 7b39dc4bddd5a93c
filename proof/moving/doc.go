// Package moving moves processes from old lock libraries to holdfast, as docs/moving.md says, with
// the real libraries and real servers. The processes of each release contend for one lock while
// others replace them, one by one, up and down. Some are killed with kill -9, also at chosen
// moments between the two locks. A section, which belongs to the test, sees each process enter and
// leave, and reports two that are inside together.
//
// The tests need seconds, and programs that not everybody has: they run by make proof PART=moving.
package moving
