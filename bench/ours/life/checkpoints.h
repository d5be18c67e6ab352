#pragma once

#include "bench/common/serve.h"

// Rows of `life`: 2 GB of variables to the local disk and back, and what saving in the background
// costs a training. TANDEM_BENCH_LIFE_MB makes them smaller, for a look at the bench itself.
namespace bench {

// MB/s until a checkpoint would survive a crash, and until all values are back (from the page
// cache, as for the peers).
Answer save();
Answer restore();
Answer restore_once();
// The same bytes in one file: written and synced; read into new memory.
Answer plain_write();
Answer plain_read();

// The time that a save in the background holds its caller / that of a blocking save.
Answer async_pause();
// The median step while it is written / the median step; an MLP of that size with Adam.
Answer async_steps();
// The process's peak memory after that / before it.
Answer async_memory();

}  // namespace bench
