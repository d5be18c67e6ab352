#pragma once

/// Everything that programs use. `namespace td = tandem;` is the customary short name.
