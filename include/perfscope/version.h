// SPDX-License-Identifier: MIT
#ifndef PERFSCOPE_VERSION_H
#define PERFSCOPE_VERSION_H

#define PS_VERSION "0.1.0"

#endif
