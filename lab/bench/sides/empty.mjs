// What an entry point is compared with: a module that has nothing.
