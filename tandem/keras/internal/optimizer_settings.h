#pragma once

#include "tandem/keras/optimizer.h"

namespace tandem::keras::optimizers {

/// The settings that all optimizers have, out of one's options.
template <class Options>
OptimizerSettings settings_of(const Options& o) {
  return {.learning_rate = o.learning_rate,
          .weight_decay = o.weight_decay,
          .clipnorm = o.clipnorm,
          .clipvalue = o.clipvalue,
          .global_clipnorm = o.global_clipnorm,
          .use_ema = o.use_ema,
          .ema_momentum = o.ema_momentum,
          .ema_overwrite_frequency = o.ema_overwrite_frequency,
          .loss_scale_factor = o.loss_scale_factor,
          .gradient_accumulation_steps = o.gradient_accumulation_steps,
          .name = o.name};
}

/// Those of Keras' arguments that all optimizers have (tandem/keras/internal/arguments.h).
inline constexpr auto kShared = [](auto& a, auto& o) {
  a("learning_rate", o.learning_rate);
  a("weight_decay", o.weight_decay);
  a("clipnorm", o.clipnorm);
  a("global_clipnorm", o.global_clipnorm);
  a("clipvalue", o.clipvalue);
  a("use_ema", o.use_ema);
  a("ema_momentum", o.ema_momentum);
  a("ema_overwrite_frequency", o.ema_overwrite_frequency);
  a("loss_scale_factor", o.loss_scale_factor);
  a("gradient_accumulation_steps", o.gradient_accumulation_steps);
};

}  // namespace tandem::keras::optimizers
