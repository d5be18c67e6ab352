#pragma once

#include <string>

#include <tandem/tandem.h>

#include "bench/common/serve.h"

// Rows of `data` that compare what a pipeline finds by itself with what can be set by hand.
namespace bench {

// Where the files are that both sides read.
std::string folder();
// A photograph from its file, at the size that networks take.
tandem::Tensor load(tandem::Tensor path);

// Two maps of unlike work. By hand: the fastest of all small settings, each tried before.
Answer autotune();
Answer autotune_by_hand();
// Two maps that do next to nothing: threads do not pay.
Answer autotune_short();
Answer autotune_short_by_hand();
// A map that waits for 5 ms and computes a little, and another one: threads beyond the cores pay.
Answer autotune_waiting();
Answer autotune_waiting_by_hand();

}  // namespace bench
