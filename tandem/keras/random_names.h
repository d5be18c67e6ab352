#pragma once

// Within tandem::keras the word `random` means keras.random. What td::random has besides is found
// there too, so that code in that namespace need not write tandem::random for it; where both have a
// name (normal, uniform, shuffle, …), it is keras.random's.

#include "tandem/keras/random.h"
#include "tandem/ops/names/random.h"
#include "tandem/ops/random_generator.h"
#include "tandem/ops/random_ops.h"

namespace tandem::keras::random {

using tandem::random::Algorithm;
using tandem::random::create_rng_state;
using tandem::random::fold_in;
using tandem::random::Generator;
using tandem::random::get_global_generator;
using tandem::random::poisson;
using tandem::random::set_global_generator;
using tandem::random::split;
using tandem::random::stateless_binomial;
using tandem::random::stateless_categorical;
using tandem::random::stateless_gamma;
using tandem::random::stateless_normal;
using tandem::random::stateless_poisson;
using tandem::random::stateless_truncated_normal;
using tandem::random::stateless_uniform;

}  // namespace tandem::keras::random
