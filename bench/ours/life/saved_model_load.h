#pragma once

namespace bench {

// A process of its own: loads the SavedModel that Keras exported
// (bench/peers/export_saved_model.py), computes its first output, and prints the answer. Returns
// the exit code.
int saved_model_load();

}  // namespace bench
