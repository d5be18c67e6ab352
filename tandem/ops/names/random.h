#pragma once

// Names of tf.random that are declared elsewhere: see tandem/ops/names/math.h.

#include "tandem/ops/nn_functions.h"

namespace tandem::random {

using nn::all_candidate_sampler;
using nn::fixed_unigram_candidate_sampler;
using nn::learned_unigram_candidate_sampler;
using nn::log_uniform_candidate_sampler;
using nn::uniform_candidate_sampler;

}  // namespace tandem::random
