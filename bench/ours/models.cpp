// Whole models, as TensorFlow exported them.
#include "bench/common/model.h"

int main(int argc, char** argv) { return bench::measure_models(argc, argv); }
